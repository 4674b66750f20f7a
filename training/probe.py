"""Probe frozen features: do they tell speakers and phonemes?

    python training/probe.py --model runs/full/preset --data-dir LibriSpeech \\
        --train-subsets train-clean-100 --train-list train_split.txt \\
        --test-list test_split.txt --by-time \\
        --alignment converted_aligned_phones.txt --out runs/full/probes
    python training/probe.py --dataset fsdd --data-dir fsdd --features s3prl \\
        --sample-rate-hz 8000 --out runs/mel
    python training/probe.py --out runs/mel --resume

Without --model the features themselves are probed, the papers' mel baseline;
with it the features are the model's. They are computed once and cached. The
folder --out gets config.json and probes.json, whose figures of a task are
those of the epoch that was best on the validation split, tested once.
--resume trains the tasks that are not in probes.json.
"""

from audio_tf.runs.probe import main

if __name__ == "__main__":
    main()
