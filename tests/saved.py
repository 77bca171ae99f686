"""What is written to a file and read again, of anything with `save` and `load`."""

import io


def reread(thing, **how):
    """Return what the file of a thing holds, written with these arguments of its `save`."""
    file = io.BytesIO()
    thing.save(file, **how)
    file.seek(0)
    return type(thing).load(file)
