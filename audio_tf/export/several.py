"""A classifier in several formats, side by side in one folder."""

from audio_tf.export import copies, formats


def write(model, folder, options, quantize=None, provenance=None):
    """Writes a classifier in several formats, and quantized ones beside.

    Nothing is written if a format refuses the model or its options do not fit,
    or if a version is there already. Other reasons are known when a format is
    converted, and leave those before it.

    Args:
        model: the `AudioClassifier`; it is not changed.
        folder: path that `Format.place` is given.
        options: dict by name of a format of a dict of its `options`.
        quantize: `None`, or how the further, smaller files are quantized,
            as `formats.convert` takes it. A format that cannot be is left
            out of these.
        provenance: dict that JSON can hold, how the model came to be, or
            `None`.

    Yields:
        Pair of the name, such as `"onnx"` or `"onnx int8"`, and the path of
        each as soon as it is written.

    Raises:
        FileExistsError: if a version is there already.
        OSError: if a file cannot be written; it says which ones were.
        RuntimeError: if the model cannot be converted, or a file does not
            work.
        ValueError: if the options do not fit the model.
    """
    for name in options:
        formats.check_model(model, name)
    todo = [(name, None, model) for name in options]
    smaller = model
    if quantize == "int8":
        smaller = copies.quantized(model)
    if quantize is not None:
        todo += [
            (name, quantize, smaller)
            for name in options
            if quantize not in formats.FORMATS[name].unquantizable
        ]
    for name, quantized, _ in todo:
        format = formats.FORMATS[name]
        format.check_write(
            model, format.place(folder, quantized), **options[name]
        )
    written = []
    for name, quantized, source in todo:
        format = formats.FORMATS[name]
        key = name if quantized is None else f"{name} {quantized}"
        try:
            path = format.write(
                source,
                format.place(folder, quantized),
                quantized,
                provenance,
                **options[name],
            )
        except OSError as error:
            kept = ", ".join(map(str, written)) or "nothing"
            raise OSError(
                f"{key} was not written: {error}. Written before: {kept}"
            ) from error
        written.append(path)
        yield key, path
