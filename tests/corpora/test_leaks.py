"""Sources of clips that are on both sides of a split."""

from corpus_files import touch, write_csv

from audio_tf import corpora
from audio_tf.corpora import leaks

VOCABULARY = "0,Rain,/m/0\n"
DEV = "fname,labels,mids,split\n1,Rain,/m/0,train\n2,Rain,/m/0,val\n"
EVAL = "fname,labels,mids\n3,Rain,/m/0\n4,Rain,/m/0\n"
INFO = '{{"{}": {{"uploader": "jo", "license": "x"}}}}'


def corpus(split, sources):
    files = [f"{split}/{row}.wav" for row in range(len(sources))]
    return corpora.Corpus(
        files,
        [["a"]] * len(files),
        ["a"],
        sources=sources,
        source_kind="speaker",
    )


def test_each_pair_of_splits_is_compared():
    """Against a comparison of every clip with every other."""
    sources = {
        "train": ["jo", "ann", None, "ann", "zoe"],
        "val": ["bob", "ann", "ann", None],
        "test": ["jo", "ann", None, "bob"],
    }
    splits = {name: corpus(name, each) for name, each in sources.items()}
    found = {leak.splits: leak for leak in leaks.of_sources(splits)}
    assert len(found) == 3
    for (one, two), leak in found.items():
        pairs = [
            (splits[one].files[a], splits[two].files[b])
            for b, second in enumerate(sources[two])
            for a, first in enumerate(sources[one])
            if first is not None and first == second
        ]
        assert leak.kind == "speaker" and leak.files == pairs[0]
        assert leak.clips == len({second for _, second in pairs})
        names = set(sources[one]) & set(sources[two]) - {None}
        assert leak.shared == len(names)
    assert str(found["train", "test"]).startswith(
        "train/0.wav in train and test/0.wav in test have one speaker"
    )
    apart = {"train": corpus("train", ["jo"]), "val": corpus("val", [None])}
    assert leaks.of_sources(apart) == []


def test_corpora_know_where_clips_come_from(tmp_path):
    esc = tmp_path / "esc"
    esc.mkdir()
    rows = ("1-17-A-3.wav,1", "2-17-B-3.wav,2", "3-18-C.ogg,3", "x.wav,3")
    text = "filename,fold,target,category\n"
    text += "".join(f"{row},3,dog\n" for row in rows)
    write_csv(esc, text, "esc50.csv")
    splits = corpora.read_esc(esc, {"train": [1, 3], "val": [2], "test": []})
    assert splits["train"].sources == ["17", "18", None]
    (leak,) = leaks.of_sources(splits)
    assert (leak.kind, leak.splits) == ("recording", ("train", "val"))

    fsdd = tmp_path / "fsdd"
    touch(*(fsdd / "recordings" / f"3_jo_{i}.wav" for i in (0, 5, 10)))
    (_, _, leak) = leaks.of_sources(corpora.load_corpus("fsdd", fsdd))
    assert (leak.kind, leak.shared, leak.clips) == ("speaker", 1, 1)
    # Who is to be told must be on both sides.
    who = corpora.load_corpus("fsdd", fsdd, classes="speakers")
    assert leaks.of_sources(who) == []

    arabic = tmp_path / "arabic"
    arabic.mkdir()
    for split, who in (("train", "00000003"), ("val", "00000002")):
        text = f"file,class\ndataset/go/{who}_NO_01.ogg,go\n"
        write_csv(arabic, text, f"{split}.csv")
    found = corpora.load_corpus("arabic_speech_commands", arabic)
    assert found["train"].source_kind == "speaker"
    assert found["train"].sources == ["00000003"]
    assert found["val"].sources == ["00000002"]


def test_uploaders_are_known_where_the_metadata_are(tmp_path):
    truth, metadata = (
        tmp_path / f"FSD50K.{name}" for name in ("ground_truth", "metadata")
    )
    truth.mkdir()
    for name, text in (
        ("vocabulary", VOCABULARY),
        ("dev", DEV),
        ("eval", EVAL),
    ):
        write_csv(truth, text, f"{name}.csv")
    train = corpora.read_fsd50k(tmp_path)["train"]
    assert train.sources is None and train.licences is None
    metadata.mkdir()
    for name, clip in (("dev", 2), ("eval", 4)):
        file = metadata / f"{name}_clips_info_FSD50K.json"
        file.write_text(INFO.format(clip))
    splits = corpora.read_fsd50k(tmp_path)
    assert splits["train"].sources == [None]
    # So is what each clip may be used for.
    assert splits["train"].licences == [None]
    assert splits["val"].licences == ["x"] == splits["val"].select([0]).licences
    (leak,) = leaks.of_sources(splits)
    assert (leak.kind, leak.splits) == ("uploader", ("val", "test"))
    assert [file.stem for file in leak.files] == ["2", "4"]


def test_sources_of_ones_own_are_drawn_whole(tmp_path):
    """And are a leak where rows put one on both sides."""
    rows = [(f"{n}.wav", "dog", "jo ann zoe".split()[n % 3]) for n in range(9)]
    rows += [(f"{n}.wav", "cat", f"who{n // 2}") for n in range(9, 60)]
    rows += [("60.wav", "cat", ""), ("61.wav", "cat", " ")]
    text = "filename,labels,source\n"
    text += "".join(",".join(row) + "\n" for row in rows)
    splits = corpora.read_csv(write_csv(tmp_path, text))
    assert leaks.of_sources(splits) == []
    assert sum(map(len, splits.values())) == 62
    names = [
        {source or file for source, file in zip(each.sources, each.files)}
        for each in splits.values()
    ]
    units = len({row[2].strip() for row in rows}) + 1
    assert [len(each) for each in names[1:]] == [units // 10] * 2
    for each in splits.values():
        order = [int(file.stem) for file in each.files]
        assert order == sorted(order) and order
    other = corpora.read_csv(write_csv(tmp_path, text), seed=1)
    assert other["test"].files != splits["test"].files

    text = "filename,labels,split,source\na.wav,x,train,jo\nb.wav,x,val,jo\n"
    (leak,) = leaks.of_sources(corpora.read_csv(write_csv(tmp_path, text)))
    assert (leak.kind, leak.splits) == ("source", ("train", "val"))
