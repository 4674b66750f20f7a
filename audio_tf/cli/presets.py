"""List the sizes that models are built in, by name.

Each with its parameters, whether it takes waveforms or features, and whether
no output depends on later sound.
"""

from audio_tf import console


def add(parser):
    """Adds nothing: the command has no flags."""


def run(arguments):
    with console.quiet_tensorflow():
        from audio_tf import models
    for name, family in models.list_sizes().items():
        backbone = family.from_preset(name)
        print(
            f"{name:40s} {backbone.count_params():>12,} parameters, untrained, "
            f"takes {backbone.takes}, "
            f"{'causal' if backbone.causal else 'not causal'}"
        )
    return 0
