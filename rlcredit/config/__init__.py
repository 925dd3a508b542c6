"""What people write, checked before anything is made of it and refused with one message that names the place."""
