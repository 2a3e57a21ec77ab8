"""Tables in the folders of W&B runs, read without wandb."""
