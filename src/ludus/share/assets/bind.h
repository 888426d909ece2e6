// Makes an array argument of a Warp kernel of a slot. Included by each module of kernels, after Warp's own headers.
template <typename T>
static void bind_array(wp::array_t<T>& array, const Slot& slot)
{
    array.data = static_cast<T*>(const_cast<void*>(slot.data));
    array.grad = nullptr;
    for (int axis = 0; axis < 4; ++axis) {
        array.shape.dims[axis] = slot.shape[axis];
        array.strides[axis] = slot.strides[axis];
    }
    array.ndim = slot.ndim;
    array.flags = 0;
}
