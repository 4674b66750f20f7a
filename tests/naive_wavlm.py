"""WavLM and HuBERT of one clip in numpy, by the names of their checkpoints."""

import naive
import numpy as np
from scipy.special import erf


def gelu(x):
    return 0.5 * x * (1.0 + erf(x / np.sqrt(2.0)))


def norm(w, place, x, axis=-1):
    """Over features, or over time with one group for each channel."""
    mean = x.mean(axis=axis, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=axis, keepdims=True)
    x = (x - mean) / np.sqrt(variance + 1e-5)
    return x * w[f"{place}.weight"] + w[f"{place}.bias"]


def dense(w, place, x):
    return x @ w[f"{place}.weight"].T + w[f"{place}.bias"]


def convolved(x, kernel, stride, groups=1):
    """`(time, inputs)` by a kernel `(outputs, inputs / groups, frames)`."""
    outputs, part, size = kernel.shape
    rows = []
    for start in range(0, len(x) - size + 1, stride):
        window, row = x[start : start + size], []
        for output in range(outputs):
            first = output // (outputs // groups) * part
            inputs = window[:, first : first + part]
            row.append((inputs.T * kernel[output]).sum())
        rows.append(row)
    return np.array(rows)


def frames_of(config, w, x):
    """The front end, with the names of `feature_extractor`."""
    x = x[:, None]
    for index, stride in enumerate(config["conv_stride"]):
        place = f"feature_extractor.conv_layers.{index}"
        x = convolved(x, w[f"{place}.conv.weight"], stride)
        if config["conv_bias"]:
            x = x + w[f"{place}.conv.bias"]
        if config["feat_extract_norm"] == "layer":
            x = norm(w, f"{place}.layer_norm", x)
        elif index == 0:
            x = norm(w, f"{place}.layer_norm", x, axis=0)
        x = gelu(x)
    x = norm(w, "feature_projection.layer_norm", x)
    return dense(w, "feature_projection.projection", x)


def positions(config, w, x):
    place, size = "encoder.pos_conv_embed.conv", len(x)
    direction = w.get(
        f"{place}.weight_v", w.get(f"{place}.parametrizations.weight.original1")
    )
    gain = w.get(
        f"{place}.weight_g", w.get(f"{place}.parametrizations.weight.original0")
    )
    kernel = direction.copy()
    for k in range(kernel.shape[-1]):
        length = np.sqrt((direction[:, :, k] ** 2).sum())
        kernel[:, :, k] *= gain[0, 0, k] / length
    half = config["num_conv_pos_embeddings"] // 2
    padded = np.pad(x, [[half, half], [0, 0]])
    groups = config["num_conv_pos_embedding_groups"]
    found = convolved(padded, kernel, 1, groups)[:size]
    return gelu(found + w[f"{place}.bias"])


def attention(config, w, index, x):
    place = f"encoder.layers.{index}.attention"
    heads, width = config["num_attention_heads"], config["hidden_size"]
    size = width // heads
    q, k, v = (dense(w, f"{place}.{name}_proj", x) for name in "qkv")
    mixed = np.zeros_like(x)
    for h in range(heads):
        part = naive.head(x, h, size)
        mine = [naive.head(each, h, size) for each in (q, k, v)]
        for i in range(len(x)):
            scores = mine[1] @ mine[0][i] / np.sqrt(size)
            if config["model_type"] == "wavlm":
                units = dense(w, f"{place}.gru_rel_pos_linear", part[i])
                sums = units.reshape(2, 4).sum(axis=1)
                one, other = 1.0 / (1.0 + np.exp(-sums))
                const = w[f"{place}.gru_rel_pos_const"][0, h, 0, 0]
                gate = one * (other * const - 1.0) + 2.0
                table = w["encoder.layers.0.attention.rel_attn_embed.weight"]
                for j in range(len(x)):
                    bucket = naive.distance_bucket(
                        j - i,
                        config["num_buckets"],
                        config["max_bucket_distance"],
                    )
                    scores[j] += gate * table[bucket, h]
            mixed[i, h * size : (h + 1) * size] = (
                naive.softmax(scores) @ mine[2]
            )
    return dense(w, f"{place}.out_proj", mixed)


def feed_forward(w, index, x):
    place = f"encoder.layers.{index}.feed_forward"
    x = gelu(dense(w, f"{place}.intermediate_dense", x))
    return dense(w, f"{place}.output_dense", x)


def hidden_states(config, arrays, x, normalize=False):
    """All hidden states of one clip, a list of `(frames, width)`."""
    w = {name: array.astype("float64") for name, array in arrays.items()}
    x = x.astype("float64")
    if normalize:
        x = (x - x.mean()) / np.sqrt(x.var() + 1e-7)
    x = frames_of(config, w, x)
    x = x + positions(config, w, x)
    first = config["do_stable_layer_norm"]
    if not first:
        x = norm(w, "encoder.layer_norm", x)
    states = [x]
    for index in range(config["num_hidden_layers"]):
        place = f"encoder.layers.{index}"
        before, after = f"{place}.layer_norm", f"{place}.final_layer_norm"
        if first:
            x = x + attention(config, w, index, norm(w, before, x))
            x = x + feed_forward(w, index, norm(w, after, x))
        else:
            x = norm(w, before, x + attention(config, w, index, x))
            x = norm(w, after, x + feed_forward(w, index, x))
        states.append(x)
    if first:
        states[-1] = norm(w, "encoder.layer_norm", x)
    return states
