"""Recorded episodes as a torch Dataset."""

import pathlib
import unittest

import cohort
import numpy as np

NEEDS = ("torch", "h5py")
FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "data" / "fixtures"
ROBOMIMIC = FIXTURES / "robomimic.hdf5"


def episodes():
    """Name, action (steps, A) and the numbers of each demo, as h5py reads them."""
    import h5py

    with h5py.File(ROBOMIMIC) as file:
        names = sorted(file["data"], key=lambda name: int(name.rsplit("_", 1)[-1]))
        return [(name, file["data"][name]["actions"][:].astype(np.float32)) for name in names]


class Windows(unittest.TestCase):
    def test_windows_hold_the_actions_that_h5py_reads(self):
        windows = cohort.data.open(ROBOMIMIC, window=(2, 4), splits=["all"], proprio=["obs/eef_pos"])
        demos = episodes()
        self.assertEqual(len(windows), sum(len(actions) for _, actions in demos))
        self.assertEqual(windows.fields["action"], ("float32", (4, demos[0][1].shape[1])))
        for index in range(0, len(windows), 3):
            sample = windows[index]
            _, episode, step = windows.address(index)
            actions = demos[episode][1]
            real = np.arange(step, step + 4) < len(actions)
            np.testing.assert_array_equal(sample["action_mask"].numpy(), real)
            np.testing.assert_array_equal(sample["action"].numpy()[real], actions[step : step + 4])
            np.testing.assert_array_equal(sample["observation_mask"].numpy(), [step > 0, True])

    def test_batches_and_torchs_loader_give_the_samples(self):
        import torch

        windows = cohort.data.open(ROBOMIMIC, window=(1, 2), splits=["all"], proprio=["obs/eef_pos"], threads=2)
        whole = windows.read(range(len(windows)))
        for name, values in whole.items():
            self.assertIsInstance(values, torch.Tensor)
            self.assertEqual(tuple(values.shape), (len(windows), *windows.fields[name][1]))
            torch.testing.assert_close(torch.stack([windows[i][name] for i in range(len(windows))]), values, rtol=0, atol=0, equal_nan=True)
        loader = torch.utils.data.DataLoader(windows, batch_size=5)
        torch.testing.assert_close(torch.cat([batch["action"] for batch in loader]), whole["action"], rtol=0, atol=0)
        orders = []
        for epoch in (0, 1, 0):
            windows.set_epoch(epoch)
            orders.append(torch.cat([batch["action"] for batch in windows.batches(4, seed=3)]))
        self.assertEqual(len(orders[0]), len(windows))
        self.assertTrue(torch.equal(orders[0], orders[2]))
        self.assertFalse(torch.equal(orders[0], orders[1]))

    def test_what_is_not_there_is_named(self):
        windows = cohort.data.open(ROBOMIMIC, splits=["all"], proprio=[])
        with self.assertRaises(IndexError):
            windows[len(windows)]
        with self.assertRaisesRegex(cohort.Error, f"no window {len(windows)}"):
            windows.read([len(windows)])
        with self.assertRaisesRegex(cohort.Error, "actoins"):
            cohort.data.open(ROBOMIMIC, actions=["actoins"], proprio=[], splits=["all"])
        with self.assertRaisesRegex(cohort.Error, "strid"):
            cohort.data.open(ROBOMIMIC, strid=2)
        with self.assertRaises(cohort.Error):
            cohort.data.open(FIXTURES / "nowhere.hdf5")


if __name__ == "__main__":
    unittest.main()
