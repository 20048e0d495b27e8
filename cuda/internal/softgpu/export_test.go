package softgpu

// Threads tells that a context is current on one thread and not on another.
const Threads = threads
