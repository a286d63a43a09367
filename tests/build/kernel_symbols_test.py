#!/usr/bin/env python3
"""kernel_symbols.py finds what is shared and nothing else."""

import unittest

from kernel_symbols import shared

LISTING = """\
0000000000000000 T glassgrad::detail::avx2::kernels()
0000000000000010 t glassgrad::detail::avx2::(anonymous namespace)::exp_each(long)
                 U memcpy
0000000000000020 W float const& std::max<float>(float const&, float const&)
0000000000000030 W float glassgrad::detail::avx2::fast_exp<float>(float)
0000000000000040 W float glassgrad::detail::avx512::fast_exp<float>(float)
0000000000000000 r .LC0
"""


class Shared(unittest.TestCase):
    def test_names_of_others(self):
        self.assertEqual(
            shared(LISTING, "avx2"),
            [
                "W float const& std::max<float>(float const&, float const&)",
                "W float glassgrad::detail::avx512::fast_exp<float>(float)",
            ],
        )

    def test_nothing(self):
        self.assertEqual(shared("", "avx2"), [])


if __name__ == "__main__":
    unittest.main()
