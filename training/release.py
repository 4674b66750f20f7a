"""Release a trained model: a folder that `from_preset` loads by its name.

    python training/release.py --run runs/esc10 --name my_esc10 \\
        --use "It names one of ten sounds." --corpus "ESC-10" \\
        --licence "CC BY 3.0" --baseline runs/esc10/baseline.json

Scores the split --split of the run's corpus by the preset of the run, and
writes the preset, its provenance and a model card into the folder --into,
beside other released presets, with an entry in index.json. A run of `pretrain`
is released with the figures of its probes: --probes is the probes.json of the
encoder, --baseline that of the plain features.

A model is refused whose figure is below that of the baseline, or whose corpus
forbids commercial use.
"""

from audio_tf.runs.release import main

if __name__ == "__main__":
    main()
