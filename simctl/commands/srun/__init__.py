"""srun: an allocation or a step of one, its launch, and the watch over its tasks."""
