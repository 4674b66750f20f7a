# make demo    from nothing to an exported classifier, on synthetic sound
# make test    linter and tests
# make zoo     trains the released presets anew; DATA has their corpora
#
# Each makes the virtual environment $(VENV) if there is none.

PYTHON ?= python3
VENV ?= .venv
DEMO ?= demo
BIN = $(VENV)/bin

export TF_CPP_MIN_LOG_LEVEL ?= 3
# What was imported once is compiled, whatever the environment says: else each
# process of a test compiles TensorFlow's Python anew, ten seconds of a core.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test lint test-long test-slow test-jax test-tfio test-serving \
    test-fire test-formats test-app test-peers test-beam test-wheel \
    test-defects \
    test-examples docs benchmark zoo clean

demo: $(VENV)/.installed
	@rm -rf $(DEMO)
	@$(BIN)/python -c "from audio_tf.corpora import synthetic; \
	    synthetic.write_synthetic_corpus('$(DEMO)/corpus')"
	$(BIN)/audio-tf classify $(DEMO)/corpus/audio/test_00599.wav \
	    --model audio_transformer_synthetic_events
	$(BIN)/python training/train.py --config training/configs/demo.py \
	    --data-dir $(DEMO)/corpus --cache-dir $(DEMO)/cache --out $(DEMO)/run
	$(BIN)/audio-tf classify $(DEMO)/corpus/audio/test_00599.wav \
	    --model $(DEMO)/run/saved_model
	@grep test_00599 $(DEMO)/corpus/synthetic.csv

# A file's tests stay with one worker, which makes its fixtures once; files are
# handed out in the order in which they are collected, the longest first.
test: lint
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder \
	    -m "not slow and not long and not costly"

lint: $(VENV)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

# Runs of whole commands, killed, resumed and compared, and tests that take
# seconds each, of graphs above all.
test-long: $(VENV)/.installed
	$(BIN)/pytest -n 2 --dist worksteal -m "(long or costly) and not slow"

# What `test` checks of one of a kind, for all of them.
test-slow: $(VENV)/.installed
	$(BIN)/pytest -n 2 -m slow

# The layers on JAX, each called as one program (`tests/jax_programs.py`), and
# trainings over hosts, which `test-slow` skips where JAX is not installed.
test-jax: $(VENV)/.installed
	$(BIN)/pip install --quiet -e ".[jax]"
	KERAS_BACKEND=jax $(BIN)/pytest -n 2 --dist worksteal \
	    -m "not slow and not long and not one_backend" \
	    tests/attention tests/layers tests/models tests/test_jax_programs.py \
	    tests/test_optimizers.py tests/runs/test_distribution.py
	$(BIN)/pytest -n 2 -m slow tests/runs/test_hosts.py

# tensorflow-io needs an older TensorFlow, so an environment of its own.
test-tfio:
	$(MAKE) VENV=$(VENV)-tfio EXTRAS=test,tfio $(VENV)-tfio/.installed
	$(VENV)-tfio/bin/pytest tests/audio/test_graph_tfio.py

# KServe wants an older protobuf, so an environment of its own.
test-serving:
	$(MAKE) VENV=$(VENV)-serving EXTRAS=test,serving \
	    $(VENV)-serving/.installed
	$(VENV)-serving/bin/pytest tests/serving tests/client \
	    tests/export/test_serving_kit.py

# The stand-in under load, about two hours: seconds of each load of the first
# three parts, and of all of the last.
SECONDS ?= 20
CHAOS ?= 3600
test-fire:
	$(MAKE) VENV=$(VENV)-serving EXTRAS=test,serving \
	    $(VENV)-serving/.installed
	for part in "curves --seconds $(SECONDS)" \
	    "overload --seconds $(SECONDS)" "rolling --seconds $(SECONDS)" \
	    "chaos --seconds $(CHAOS)"; do \
	    PYTHONPATH=tests $(VENV)-serving/bin/python -m serving.fire $$part \
	    || exit 1; done
	$(VENV)-serving/bin/python benchmarks/load.py --rows \
	    runs/fire/curves.jsonl --plot runs/fire/curves.png

# ONNX Runtime, LiteRT and OpenVINO, all beside the newest TensorFlow.
test-formats: $(VENV)/.installed
	$(BIN)/pip install --quiet -e ".[formats]"
	$(BIN)/pytest -n 2 -m "not slow" tests/export/test_formats.py

# The page in a real browser, Debian's package chromium; without one most skip.
test-app:
	$(MAKE) VENV=$(VENV)-app EXTRAS=test,app,browser $(VENV)-app/.installed
	$(VENV)-app/bin/pytest tests/app

# The same models by other libraries, with PyTorch for processors alone; and
# ours on it: what TensorFlow has stored, and the contracts.
TORCH_TESTS = tests/test_compatibility.py tests/models \
    tests/attention/test_attention.py tests/attention/test_flash.py \
    tests/attention/test_synthesizers.py tests/layers \
    tests/runs/test_callbacks.py tests/test_optimizers.py tests/ops
test-peers:
	$(MAKE) VENV=$(VENV)-peers EXTRAS=test,peers $(VENV)-peers/.installed
	$(VENV)-peers/bin/pytest tests/peers
	KERAS_BACKEND=torch $(VENV)-peers/bin/pytest -n 2 --dist worksteal \
	    -m "not slow and not long and not one_backend" $(TORCH_TESTS)

# Whole runs of `audio-tf score`, `prepare` and `build`, on Beam's runner for one
# machine.
test-beam: $(VENV)/.installed
	$(BIN)/pip install --quiet -e ".[beam]"
	$(BIN)/pytest tests/archives tests/runs/test_prepare.py \
	    tests/builders/test_beam.py

# The wheel in a new environment, outside the repository; with the page, if
# there is Debian's package chromium.
test-wheel:
	$(PYTHON) tests/wheel.py

# Plants faults one at a time; each must be caught by a test.
test-defects: $(VENV)/.installed
	PYTHONPATH=tests $(BIN)/python -m defects --jobs 2

# The site, into site/. Nothing is fetched for it, or by its pages.
docs: $(VENV)/.installed
	$(BIN)/pip install --quiet -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# What the site shows as notebooks, from nothing: no file, no network.
test-examples: $(VENV)/.installed
	@for example in docs/examples/*.py; do \
	    echo "$$example"; $(BIN)/python $$example || exit 1; done

benchmark: $(VENV)/.installed
	$(BIN)/pip install --quiet -e ".[benchmark,formats]"
	$(BIN)/python benchmarks/data.py
	$(BIN)/python benchmarks/serving.py
	$(BIN)/python benchmarks/pretraining.py
	$(BIN)/python benchmarks/attention_forms.py
	$(BIN)/python benchmarks/attention.py
	$(BIN)/python benchmarks/attention_report.py runs/attention.jsonl \
	    --plot runs/attention.png

DATA ?= data
ZOO ?= runs/zoo
# $(1) the config, $(2) the corpus' folder in DATA, $(3) further flags.
define train
	$(BIN)/audio-tf train --config training/configs/$(1).py \
	    --data-dir $(DATA)/$(2) --out $(ZOO)/$(1) $(3)

endef
# $(1) the config, $(2) the corpus' folder in DATA, $(3) the split that is
# scored, $(4) the corpus for the baseline, $(5) its licence, $(6) the use,
# $(7) further flags of the training, $(8) those of the release.
define release
	$(call train,$(1),$(2),$(7))
	$(BIN)/audio-tf baseline $(4) --data-dir $(DATA)/$(2) --split $(3) \
	    --report $(ZOO)/$(1)/baseline.json
	$(BIN)/audio-tf release --run $(ZOO)/$(1) --split $(3) --replace \
	    --name audio_transformer_$(1) --baseline $(ZOO)/$(1)/baseline.json \
	    --licence $(5) --use $(6) $(8)
endef

# Variables, for a comma ends an argument of `call`.
ARABIC_CARD = --corpus "Arabic Speech Commands v1 (Ghandoura et al.)" --limits \
"It knows 40 words of Arabic alone, from eighteen speakers with a microphone; \
any other sound gets the nearest of them. Other rooms were not tried."
FSDD_CARD = --corpus "Free Spoken Digit Dataset (Jakobovski et al.)"
DIGITS_CARD = $(FSDD_CARD) --limits "It has learned six voices, recorded close \
to a microphone at 8 kHz, and knows nothing but the ten digits."
SPEAKERS_CARD = $(FSDD_CARD) --limits "It knows six people alone, by single \
digits recorded at 8 kHz; it recognises nobody else and proves no identity."
ENCODER_LIMITS = It is small, and has heard commands and digits alone. Plain \
features are normalised in each clip, so the mean that the speaker probe sees \
tells nothing of them: statistics of MFCC with scikit-learn name the six \
speakers better than the probe of this encoder does. It is not meant for \
decisions about people.

zoo: $(VENV)/.installed
	$(call release,synthetic_events,synthetic,test,--dataset synthetic,\
	    "Apache-2.0",\
	    "It names the sound events of the corpus that this library writes.",\
	    --seed 1)
	for seed in 0 1; do $(BIN)/audio-tf train \
	    --config training/configs/arabic_teacher.py --seed $$seed \
	    --data-dir $(DATA)/arabic_speech_commands \
	    --out $(ZOO)/arabic_teacher_$$seed || exit 1; done
	$(call release,arabic_commands,arabic_speech_commands,val,\
	    --dataset arabic_speech_commands,"CC BY 4.0",\
	    "It names one of 40 Arabic command words in a second of speech.",\
	    --teachers $(ZOO)/arabic_teacher_0/preset \
	    $(ZOO)/arabic_teacher_1/preset,$(ARABIC_CARD))
	$(call train,esc10_teacher,esc10)
	$(call train,esc10,esc10,--teachers $(ZOO)/esc10_teacher/preset)
	$(BIN)/audio-tf train --config training/configs/esc10_teacher.py \
	    --data-dir $(DATA)/esc10 --train-folds 1 2 3 4 --test-folds \
	    --out $(ZOO)/esc10_teacher_whole
	$(BIN)/audio-tf train --config training/configs/esc10.py \
	    --data-dir $(DATA)/esc10 --train-folds 1 2 3 4 --test-folds \
	    --teachers $(ZOO)/esc10_teacher_whole/preset --out $(ZOO)/esc10_whole
	$(BIN)/audio-tf baseline --dataset esc10 --data-dir $(DATA)/esc10 \
	    --train-folds 1 2 3 --val-folds --test-folds 4 --other-splits \
	    --split test --report $(ZOO)/esc10/baseline.json
	$(BIN)/audio-tf release --run $(ZOO)/esc10_whole \
	    --measured-run $(ZOO)/esc10 --name audio_transformer_esc10 \
	    --replace --baseline $(ZOO)/esc10/baseline.json \
	    --corpus "ESC-10 (K. J. Piczak), folds 1-4" --licence "CC BY 3.0" \
	    --use "It names one of ten environmental sounds." \
	    --limits "It knows ten sounds alone, from 320 clips; other sounds get the nearest of them."
	$(call train,fsdd_digits_teacher,fsdd)
	$(call release,fsdd_digits,fsdd,val,--dataset fsdd,"CC BY-SA 4.0",\
	    "It names a digit that is spoken in English.",\
	    --teachers $(ZOO)/fsdd_digits_teacher/preset,$(DIGITS_CARD))
	$(call release,fsdd_speakers,fsdd,val,\
	    --dataset fsdd --classes speakers,"CC BY-SA 4.0",\
	    "It tells which of six people speaks a digit.",,$(SPEAKERS_CARD))
	rm -rf $(ZOO)/gathered
	$(BIN)/audio-tf gather $(ZOO)/gathered fsdd=$(DATA)/fsdd \
	    arabic_speech_commands=$(DATA)/arabic_speech_commands
	$(BIN)/audio-tf pretrain --config training/configs/speech_ssl.py \
	    --data-dir $(ZOO)/gathered --out $(ZOO)/speech
	$(BIN)/audio-tf probe --config training/configs/fsdd_probe.py \
	    --features s3prl --data-dir $(DATA)/fsdd --out $(ZOO)/speech_mel
	$(BIN)/audio-tf probe --config training/configs/fsdd_probe.py \
	    --model $(ZOO)/speech/preset --data-dir $(DATA)/fsdd \
	    --out $(ZOO)/speech_probe
	$(BIN)/audio-tf release --run $(ZOO)/speech --name audio_albert_speech \
	    --replace --probes $(ZOO)/speech_probe/probes.json \
	    --baseline $(ZOO)/speech_mel/probes.json \
	    --licence "CC BY 4.0 and CC BY-SA 4.0" \
	    --corpus "the training clips of Arabic Speech Commands and FSDD" \
	    --use "It turns speech into frames that tell speakers and phones, for probes and for classifiers with few labels." \
	    --limits "$(ENCODER_LIMITS)"

EXTRAS ?= test
# Python compiles what is imported; pip would compile all of TensorFlow.
$(VENV)/.installed: setup.cfg pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --no-compile -e ".[$(EXTRAS)]"
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-tfio $(VENV)-serving $(VENV)-app $(VENV)-peers \
	    $(DEMO)
