"""python3 -m unittest discover -s tests/load/engine_bench"""

import json
import unittest

import figures
import replica
from figures import Round, Run

KEY = ("decode", 512, 4)


class Figures(unittest.TestCase):
    """Each test: rounds in, the lines of the table out."""

    def check(self, rounds, *expect):
        """Compares the lines below the table's head."""
        self.assertEqual(figures.render("peer", figures.calm(rounds)).splitlines()[2:], list(expect))

    def test_over_one_is_faster_for_speeds_and_for_times(self):
        peer = Run({("prefill", 512, 1): 100.0, ("ttft_cold", 512, 1): 300.0}, 0.0)
        own = Run({("prefill", 512, 1): 200.0, ("ttft_cold", 512, 1): 150.0}, 0.0)
        self.check(
            [Round(peer, own)],
            "| prefill of 512 tokens | tok/s | 100.0 | 200.0 | 2.00 |",
            "| first token of 512 new tokens | ms | 300.0 | 150.0 | 2.00 |")

    def test_ratios_are_of_runs_of_the_same_round(self):
        pairs = [(10.0, 20.0), (100.0, 200.0), (10.0, 30.0)]
        self.check(
            [Round(Run({KEY: peer}, 0.0), Run({KEY: own}, 0.0)) for peer, own in pairs],
            "| decode after 512 tokens, 4 streams | tok/s together | 10.0 (10.0–100.0) | 30.0 (20.0–200.0) | 2.00 |")

    def test_a_disturbed_round_is_left_out_whole_where_there_is_a_quiet_one(self):
        quiet, disturbed = Round(Run({KEY: 10.0}, 0.01), Run({KEY: 10.0}, 0.01)), Round(Run({KEY: 1.0}, 0.6), Run({KEY: 9.0}, 0.0))
        line = "| decode after 512 tokens, 4 streams | tok/s together | {} | {} | {} |"
        self.check([disturbed, quiet], line.format("10.0", "10.0", "1.00"))
        self.check([disturbed], line.format("1.0", "9.0", "9.00"))

    def test_a_system_that_was_not_run_has_dashes(self):
        self.check([Round(None, Run({("ttft_warm", 2048, 1): 12.0}, 0.0))],
                   "| first token of 2,048 tokens asked before | ms | – | 12.0 | – |")

    def test_a_row_of_the_replica_s_own_bench_is_understood(self):
        row = {"prompt_tokens": 512, "streams": 1, "decode_tokens_per_second": 40.0, "prefill_tokens_per_second": 300.0,
               "cold_ttft_seconds": 1.5, "warm_ttft_seconds": 0.05}
        self.assertEqual(replica.read(json.dumps(row)), {
            ("decode", 512, 1): 40.0, ("prefill", 512, 1): 300.0, ("ttft_cold", 512, 1): 1500.0,
            ("ttft_warm", 512, 1): 50.0})
        self.assertEqual(replica.read(json.dumps({**row, "streams": 4})), {("decode", 512, 4): 40.0})


if __name__ == "__main__":
    unittest.main()
