// Marks functions that run on the host and, where nvcc compiles them, on the device too.
#ifndef HONE_HOST_DEVICE_H
#define HONE_HOST_DEVICE_H

#if defined(__CUDACC__)
#define HONE_HOST_DEVICE __host__ __device__
#else
#define HONE_HOST_DEVICE
#endif

#endif
