"""The Python peer of rlds_read: tensorflow-datasets and tf.data on one thread, and h5py.

    rlds_read.py RLDS_FOLDER [HDF5_FILE]

Answers "ready VERSIONS", then for each line the seconds of one pass: "steps" reads every number of every episode, "images"
decodes every frame, "hdf5" reads every array of every demo.
"""
import os
import sys
import time

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import h5py
import tensorflow as tf
import tensorflow_datasets as tfds


def rlds_pass(builder, images):
    """Episodes as tensorflow-datasets gives them; what is not asked for is not decoded."""
    steps = builder.info.features["steps"].feature
    skip = {}

    def mark(features, out):
        for key, feature in features.items():
            if isinstance(feature, tfds.features.Image) and not images:
                out[key] = tfds.decode.SkipDecoding()
            elif isinstance(feature, tfds.features.FeaturesDict):
                mark(feature, out.setdefault(key, {}))
    mark(steps, skip)
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1
    read = tfds.ReadConfig(interleave_cycle_length=1, num_parallel_calls_for_decode=1,
                           num_parallel_calls_for_interleave_files=1, options=options)
    # Whole episodes, one tensor per field: the fastest way that tensorflow-datasets offers.
    data = builder.as_dataset(split="train", read_config=read, decoders={"steps": skip} if not images else None)
    count = 0
    for episode in data:
        for step in episode["steps"].batch(1 << 16):
            count += int(tf.shape(step["is_first"])[0])
    return count


def hdf5_pass(path):
    count = 0
    with h5py.File(path) as f:
        for demo in f["data"].values():
            def visit(_, item):
                nonlocal count
                if isinstance(item, h5py.Dataset):
                    count += item[()].size
            demo.visititems(visit)
    return count


def main():
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    builder = tfds.builder_from_directory(sys.argv[1])
    print("ready", "tensorflow", tf.__version__, "tensorflow-datasets", tfds.__version__, "h5py", h5py.__version__, flush=True)
    for line in sys.stdin:
        what = line.strip()
        begin = time.perf_counter()
        if what == "hdf5":
            hdf5_pass(sys.argv[2])
        else:
            rlds_pass(builder, what == "images")
        print(time.perf_counter() - begin, flush=True)


if __name__ == "__main__":
    main()
