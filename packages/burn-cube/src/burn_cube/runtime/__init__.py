"""Where kernels run: devices, their memory, their queue; one module for each kind of device."""
