"""RDMA ports and network interfaces."""
