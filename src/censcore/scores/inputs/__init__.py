"""What scores take: checked inputs, and what is known at a time."""
