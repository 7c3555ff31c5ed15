"""What Slurm and Kubernetes say of this node and its jobs."""
