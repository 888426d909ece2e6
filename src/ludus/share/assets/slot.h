// An argument of a launch: memory of a buffer, and how an array lies in it.
struct Slot { const void* data; int ndim; int shape[4]; int strides[4]; };
