"""TFDS' own test of a builder, on small releases that are made here."""

import pathlib
import runpy
import unittest

import pytest
from releases import RELEASES

from audio_tf import builders

pytest.importorskip("tensorflow_datasets", reason="NO BUILDER IS TESTED")

DATASETS = pathlib.Path(__file__).resolve().parents[2] / "datasets"

# Clips by split of what `releases` writes, in the default configuration.
COUNTS = {
    "esc": {"fold1": 3, "fold2": 2, "fold4": 2},
    "fsdd": {"train": 3, "test": 2},
    "arabic_speech_commands": {"train": 2, "val": 2, "test": 2},
    "fsd50k": {"train": 2, "val": 1, "test": 2},
    "librispeech_phones": {"train": 2, "test": 1},
    "iemocap": {"session1": 3, "session5": 3},
}


def test_every_builder_has_its_counts():
    assert set(COUNTS) == set(builders.BUILDERS)


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTS)
def test_tfds_accepts_the_builder(name, tmp_path):
    from tensorflow_datasets import testing

    runpy.run_path(str(DATASETS / name / f"{name}_dataset_builder.py"))
    builder = builders.find(name)
    config = builder.BUILDER_CONFIGS[:1]
    place = "/".join([name, *(each.name for each in config)])
    source = RELEASES[place](tmp_path / "release")

    class Case(testing.DatasetBuilderTestCase):
        DATASET_CLASS = builder
        EXAMPLE_DIR = str(source)
        SPLITS = COUNTS[name]
        BUILDER_CONFIG_NAMES_TO_TEST = [each.name for each in config] or None

        def _make_builder(self, config=None):
            return builder(
                data_dir=self.tmp_dir,
                config=config,
                source=source,
                partial=True,
                progress=False,
            )

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert result.testsRun > 4
    assert not [text for _, text in result.errors + result.failures]
