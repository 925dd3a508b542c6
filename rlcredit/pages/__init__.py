"""Tables, formats of numbers and the layout that all pages share; knows nothing of what they show."""
