"""What ten lines of scikit-learn reach: the row beside every accuracy.

    python training/baseline.py --dataset esc10 --data-dir ESC-10 \\
        --train-folds 1 2 3 --val-folds 4 --test-folds 5 --split val \\
        --report baseline.json

A clip becomes means, standard deviations and quantiles of its MFCC and their
first and second slopes, over the frames that are no silence. A random forest
and a logistic regression learn them on the split `train`. Prints each figure
of the split --split as mean and standard deviation over --seeds; --report gets
all of them as JSON.
"""

from audio_tf.runs.baseline import main

if __name__ == "__main__":
    main()
