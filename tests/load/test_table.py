"""python3 -m unittest discover -s tests/load"""

import unittest

import table


def row(system, mode="small", number=0, cpu=0.0, others=0.0, p50=100.0, **more):
    """A measurement of 10,000 requests."""
    return {
        "round": number, "mode": mode, "system": system, "proxy_cpu_s": cpu, "others": others, "requests": 10_000,
        "requests_per_s": 1_000, "events": 0, "latency_us": {"p50": p50, "p99": 200.0}, "first_byte_us": {"p50": p50},
        "rss_mb": 15.0, "errors": 0, "errors_outside": 0, "prompt_tokens": 0, "cached_tokens": 0, **more,
    }


class Table(unittest.TestCase):
    """Each test: rows in, the lines of one mode's table out."""

    def check(self, rows, *expect):
        """Compares the lines below the table's head."""
        self.assertEqual(table.render(rows).splitlines()[4:], list(expect))

    def test_the_ratio_is_the_median_of_rounds_measured_together(self):
        rows = [row("nginx", number=n, cpu=cpu) for n, cpu in enumerate([0.4, 0.8, 0.4])]
        rows += [row("gateway", number=n, cpu=cpu) for n, cpu in enumerate([0.6, 1.2, 0.8])]
        self.check(
            rows,
            "| nginx | 40.0 (40.0–80.0) | 1.00 | 1,000 | 100 | 200 | 15 | 0 | 3 | 0% |",
            "| gateway | 80.0 (60.0–120.0) | 1.50 | 1,000 | 100 | 200 | 15 | 0 | 3 | 0% |")

    def test_disturbed_measurements_are_left_out_where_there_are_quiet_ones(self):
        rows = [row("gateway", number=0, cpu=0.5), row("gateway", number=1, cpu=0.9, others=0.3)]
        self.check(rows, "| gateway | 50.0 (50.0–50.0) | – | 1,000 | 100 | 200 | 15 | 0 | 1 | 0% |")
        self.check(rows[1:], "| gateway | 90.0 (90.0–90.0) | – | 1,000 | 100 | 200 | 15 | 0 | 1 | 30% |", "",
                   "Other work disturbed some of these (column `others`): measure again on a quiet machine before "
                   "anything is concluded from them.")

    def test_added_latency_is_counted_from_no_proxy(self):
        rows = [row("direct", "small-c1", p50=60.0), row("gateway", "small-c1", cpu=0.5, p50=150.0)]
        self.check(
            rows,
            "| direct | – | – | – | 1,000 | 60 | 200 | – | 0 | 1 | 0% |",
            "| gateway | 50.0 (50.0–50.0) | – | 90 | 1,000 | 150 | 200 | 15 | 0 | 1 | 0% |")

    def test_streams_are_paid_for_by_the_hundred_chunks(self):
        self.assertAlmostEqual(table.cost(row("gateway", "stream", cpu=2.0, events=100_000)), 2_000.0)

    def test_cached_tokens_are_shown_where_conversations_grow(self):
        rows = [row("nginx", "large", cpu=0.5, prompt_tokens=1_000, cached_tokens=250)]
        self.check(rows, "| nginx | 50.0 (50.0–50.0) | 1.00 | 1,000 | 100 | 200 | 15 | 25% | 0 | 1 | 0% |")


if __name__ == "__main__":
    unittest.main()
