# make demo    from nothing to an exported classifier, on synthetic sound
# make test    linter and tests
#
# Each makes the virtual environment $(VENV) if there is none.

PYTHON ?= python3
VENV ?= .venv
DEMO ?= demo
BIN = $(VENV)/bin

export TF_CPP_MIN_LOG_LEVEL ?= 3

.PHONY: demo test lint test-slow test-jax test-tfio benchmark clean

demo: $(VENV)/.installed
	@rm -rf $(DEMO)
	$(BIN)/python training/train.py --config training/configs/demo.py \
	    --data-dir $(DEMO)/corpus --cache-dir $(DEMO)/cache --out $(DEMO)/run
	$(BIN)/audio-tf classify $(DEMO)/corpus/audio/test_00599.wav \
	    --model $(DEMO)/run/saved_model
	@grep test_00599 $(DEMO)/corpus/synthetic.csv

test: lint
	$(BIN)/pytest -n 2 -m "not slow"

lint: $(VENV)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

test-slow: $(VENV)/.installed
	$(BIN)/pytest -m slow

# The layers on JAX.
test-jax: $(VENV)/.installed
	$(BIN)/pip install --quiet -e ".[jax]"
	KERAS_BACKEND=jax $(BIN)/pytest -n 2 tests/test_attention.py \
	    tests/test_attention_synthesizers.py tests/test_gaussian.py \
	    tests/test_layers.py tests/test_models.py

# tensorflow-io needs an older TensorFlow, so an environment of its own.
test-tfio:
	$(MAKE) VENV=$(VENV)-tfio EXTRAS=test,tfio $(VENV)-tfio/.installed
	$(VENV)-tfio/bin/pytest tests/test_tfio.py

benchmark: $(VENV)/.installed
	$(BIN)/pip install --quiet -e ".[benchmark]"
	$(BIN)/python benchmarks/data.py
	$(BIN)/python benchmarks/attention_forms.py
	$(BIN)/python benchmarks/attention.py
	$(BIN)/python benchmarks/attention_report.py runs/attention.jsonl \
	    --plot runs/attention.png

EXTRAS ?= test
$(VENV)/.installed: setup.cfg pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -e ".[$(EXTRAS)]"
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-tfio $(DEMO)
