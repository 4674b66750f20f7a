"""Serve a web page to try models in: sounds in, labels over time out.

It needs Gradio: pip install 'audio_tf[app]'. The page is this machine's alone,
it asks no other host for anything, and no sound that it is given is kept.
"""

from audio_tf import quiet
from audio_tf.cli import flags

MODEL = "audio_transformer_synthetic_events"
PORT = 7860


def add(parser):
    """Adds the flags of the command."""
    parser.add_argument(
        "--model",
        nargs="+",
        default=[],
        metavar="PRESET",
        help="names of released presets, folders or addresses of presets; the "
        "page begins with the first, and offers the others beside the "
        f"released ones (default: {MODEL})",
    )
    parser.add_argument(
        "--port",
        type=flags.port_number,
        default=PORT,
        help="the port on 127.0.0.1, 0 for any that is free (default: "
        "%(default)d)",
    )
    parser.add_argument(
        "--browse", action="store_true", help="open the page in a browser"
    )


def run(arguments):
    """Serves the page until it is ended, and returns the exit status."""
    with quiet.tensorflow():
        import keras

        from audio_tf.app import answering, server
        from audio_tf.export import classifiers
        from audio_tf.models import AudioClassifier, list_released
    purposes = {
        name: preset.description
        for name, preset in list_released().items()
        if preset.model == keras.saving.get_registered_name(AudioClassifier)
    }
    models = answering.Models(
        [*(arguments.model or [MODEL]), *purposes],
        classifiers.load_trained,
        purposes,
    )
    for name in arguments.model:
        models.classifier(name)
    server.serve(models, arguments.port, arguments.browse)
    return 0
