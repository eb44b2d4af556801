"""The codes: what is lost or damaged comes back, and what cannot come back is said."""

import itertools
import random
import unittest

from fulmar_lab import fec

SOURCES = [bytes([index]) * (20 + 7 * index) for index in range(5)]


class Blocks(unittest.TestCase):
    def test_any_k_units_give_all_sources(self) -> None:
        units = dict(enumerate([*SOURCES, *fec.encode(SOURCES, 3)]))
        for kept in itertools.combinations(units, len(SOURCES)):
            with self.subTest(kept=kept):
                self.assertEqual(fec.decode(len(SOURCES), {number: units[number] for number in kept}), SOURCES)

    def test_more_units_than_needed_are_no_error(self) -> None:
        units = dict(enumerate([*SOURCES, *fec.encode(SOURCES, 3)]))
        self.assertEqual(fec.decode(len(SOURCES), units), SOURCES)

    def test_missing_units_are_counted(self) -> None:
        with self.assertRaisesRegex(fec.FecError, "3 more units"):
            fec.decode(5, {0: SOURCES[0], 1: SOURCES[1]})

    def test_what_is_no_block_is_refused(self) -> None:
        for k, units, said in ((0, {}, "1 to 255"), (5, {}, "5 more units"), (1, {0: b"", 255: b"ab"}, None)):
            with self.subTest(k=k, units=units):
                if said is None:
                    self.assertEqual(fec.decode(k, units), [b""])
                else:
                    self.assertRaisesRegex(fec.FecError, said, fec.decode, k, units)
        self.assertRaisesRegex(fec.FecError, "1 to 255", fec.encode, [], 1)
        self.assertRaisesRegex(fec.FecError, "65535", fec.encode, [bytes(65536)], 1)

    def test_numbers_beyond_a_block_are_refused(self) -> None:
        for number in (300, -1, 1 << 70):
            with self.subTest(number=number):
                self.assertRaisesRegex(fec.FecError, f"{number} repair symbols", fec.encode, SOURCES, number)
                self.assertRaisesRegex(fec.FecError, f"{number} sources; a block has 1 to 255", fec.decode, number, {})
                self.assertRaisesRegex(fec.FecError, f"{number} as the number of a unit", fec.decode, 3, {number: b"ab"})
        self.assertRaises(TypeError, fec.encode, SOURCES, "3")


class Parity(unittest.TestCase):
    def test_wrong_octets_up_to_the_parity_s_strength_are_mended(self) -> None:
        payload = bytes(range(200))
        packet = bytearray(fec.append_parity(payload, 4))
        self.assertEqual(len(packet), 200 + 16)
        for place in (0, 50, 100, 150, 180, 199, 205, 215):
            packet[place] ^= 0x5A
        self.assertEqual(fec.correct(bytes(packet), 4), (payload, 8))

    def test_more_damage_is_told(self) -> None:
        packet = bytearray(fec.append_parity(bytes(200), 8))
        for place in range(0, 200, 4):
            packet[place] = 0xFF
        self.assertRaisesRegex(fec.FecError, "beyond correction", fec.correct, bytes(packet), 8)
        self.assertRaisesRegex(fec.FecError, "no message", fec.correct, b"abc", 4)
        for words in (257, 70_000, -1, 1 << 70):
            self.assertRaisesRegex(fec.FecError, f"{words} words of parity; a packet has 0 to 256", fec.append_parity, b"abc", words)
            self.assertRaisesRegex(fec.FecError, f"{words} words", fec.correct, b"abc", words)


class Windows(unittest.TestCase):
    def test_numbers_beyond_a_window_are_refused(self) -> None:
        for name, said in (("first", "as an ordinal"), ("sources", "sources of a window"), ("symbols", "symbols that may wait"), ("memory_bytes", "octets")):
            with self.subTest(name=name):
                self.assertRaisesRegex(fec.FecError, f"^-1 {said}", fec.WindowDecoder, **{name: -1})
        self.assertRaisesRegex(fec.FecError, "^-1 as an ordinal", fec.WindowDecoder().forget_before, -1)

    def test_a_window_that_slides_gives_what_was_lost(self) -> None:
        draw = random.Random(4)
        sent = [draw.randbytes(draw.randrange(1, 90)) for _ in range(400)]
        decoder = fec.WindowDecoder(sources=64)
        got: dict[int, bytes] = {}
        for ordinal, payload in enumerate(sent):
            if draw.random() > 0.15:
                got |= {ordinal: payload} | decoder.add_source(ordinal, payload)
            if ordinal % 3 == 2:
                first = max(0, ordinal - 29)
                symbol = fec.encode_window(sent[first : ordinal + 1], key=ordinal)
                got |= decoder.add_repair(symbol, first, ordinal + 1 - first, key=ordinal)
        self.assertEqual(decoder.needed, 0)
        self.assertEqual([got[ordinal] for ordinal in range(396)], sent[:396])
        held = decoder.memory_bytes
        decoder.forget_before(399)
        self.assertLess(decoder.memory_bytes, held)

    def test_what_comes_twice_or_late_is_passed_over(self) -> None:
        decoder = fec.WindowDecoder(first=5, sources=8)
        self.assertEqual(decoder.add_source(5, b"a"), {})
        self.assertEqual(decoder.add_source(5, b"a"), {})
        self.assertEqual(decoder.add_source(4, b"late"), {})

    def test_a_wrong_span_is_refused(self) -> None:
        decoder = fec.WindowDecoder(sources=8)
        self.assertRaisesRegex(fec.FecError, "over 9 sources", decoder.add_repair, bytes(9), 0, 9, 1)
        self.assertRaisesRegex(fec.FecError, "0 to 15", decoder.add_repair, bytes(9), 0, 3, 1, 16)

    def test_numbers_beyond_a_window_are_refused(self) -> None:
        decoder = fec.WindowDecoder(sources=8)
        self.assertRaisesRegex(fec.FecError, "70000 as a key", fec.encode_window, SOURCES, 70_000)
        self.assertRaisesRegex(fec.FecError, "300 as a density", fec.encode_window, SOURCES, 1, 300)
        self.assertRaisesRegex(fec.FecError, "-1 as an ordinal", decoder.add_source, -1, b"a")
        self.assertRaisesRegex(fec.FecError, "70000 sources", decoder.add_repair, bytes(9), 0, 70_000, 1)
        self.assertRaisesRegex(fec.FecError, "70000 as a key", decoder.add_repair, bytes(9), 0, 3, 70_000)


if __name__ == "__main__":
    unittest.main()
