"""Motion capture: read BVH, AMASS and C3D files, map their joints, and retarget them to a walker."""
