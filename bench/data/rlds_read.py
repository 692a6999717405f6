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


def pipelines(builder):
    """Built once, as a training script does: trajectories whose steps are not decoded (what octo's and dlimp's loaders ask
    for), and every frame of them decoded."""
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1
    read = tfds.ReadConfig(interleave_cycle_length=1, num_parallel_calls_for_decode=1,
                           num_parallel_calls_for_interleave_files=1, options=options)
    steps = builder.as_dataset(split="train", read_config=read, decoders={"steps": tfds.decode.SkipDecoding()})
    observation = builder.info.features["steps"].feature["observation"]
    cameras = [k for k, f in observation.items() if isinstance(f, tfds.features.Image)]
    frames = steps.flat_map(lambda e: tf.data.Dataset.from_tensor_slices({k: e["steps"]["observation"][k] for k in cameras}))
    frames = frames.map(lambda f: {k: tf.io.decode_image(v, channels=3, expand_animations=False) for k, v in f.items()})
    return {"steps": steps, "images": frames}


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
    built = pipelines(builder)
    print("ready", "tensorflow", tf.__version__, "tensorflow-datasets", tfds.__version__, "h5py", h5py.__version__, flush=True)
    for line in sys.stdin:
        what = line.strip()
        begin = time.perf_counter()
        if what == "hdf5":
            hdf5_pass(sys.argv[2])
        else:
            for _ in built[what]:
                pass
        print(time.perf_counter() - begin, flush=True)
    print("end", flush=True)


if __name__ == "__main__":
    main()
