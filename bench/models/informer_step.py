"""The Python peer of informer_step: the reference package's Informer under PyTorch, one training step per line of standard input.

    informer_step.py REFERENCE_DIR SETTINGS_JSON BATCH THREADS

Answers "ready PARAMETERS TORCH_VERSION", then for each line "step" with "SECONDS LOSS", and for "eval" with "SECONDS 0";
on the end of input it prints "peak KIBIBYTES".
"""
import json
import resource
import sys
import time

import torch


def main():
    reference, settings, batch, threads = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    sys.path.insert(0, reference)
    from models.model import Informer
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    s = settings
    model = Informer(s["enc_in"], s["dec_in"], s["c_out"], s["seq_len"], s["label_len"], s["pred_len"], factor=s["factor"],
                     d_model=s["d_model"], n_heads=s["n_heads"], e_layers=s["e_layers"], d_layers=s["d_layers"],
                     d_ff=s["d_ff"], dropout=s["dropout"], attn=s["attn"], embed=s["embed"], freq=s["freq"],
                     activation=s["activation"], distil=s["distil"], mix=s["mix"], device=torch.device("cpu"))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    criterion = torch.nn.MSELoss()
    x = torch.randn(batch, s["seq_len"], s["enc_in"])
    x_mark = torch.rand(batch, s["seq_len"], 4) - 0.5
    y = torch.randn(batch, s["label_len"] + s["pred_len"], s["dec_in"])
    y_mark = torch.rand(batch, s["label_len"] + s["pred_len"], 4) - 0.5

    def forward():
        decoder_input = torch.cat([y[:, :s["label_len"]], torch.zeros(batch, s["pred_len"], s["dec_in"])], 1)
        return model(x, x_mark, decoder_input, y_mark)

    def step():
        optimizer.zero_grad()
        loss = criterion(forward(), y[:, -s["pred_len"]:, -s["c_out"]:])
        loss.backward()
        optimizer.step()
        return loss.item()

    print("ready", sum(p.numel() for p in model.parameters()), torch.__version__, flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        value = 0.0
        if line.strip() == "eval":
            model.eval()
            with torch.no_grad():
                forward()
            model.train()
        else:
            value = step()
        print(time.perf_counter() - start, value, flush=True)
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)


if __name__ == "__main__":
    main()
