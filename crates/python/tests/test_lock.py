"""The interpreter's lock is free while the native half works for long: other threads of the program go on."""

import sys
import threading
import unittest

from fulmar_lab import _native

ATTEMPTS = 50


def is_free_during(work):
    """Whether another thread gets the lock before `work` ends. It has no chance before: this thread keeps the lock for a
    minute unless it gives it up."""
    got = threading.Event()
    interval = sys.getswitchinterval()
    for _ in range(ATTEMPTS):
        wanted = threading.Event()
        other = threading.Thread(target=lambda: wanted.wait() and got.set())
        sys.setswitchinterval(60.0)
        try:
            # It keeps the lock until it waits: from now on nobody gives it up for impatience.
            other.start()
            wanted.set()
            work()
            if got.is_set():
                return True
        finally:
            sys.setswitchinterval(interval)
        other.join()
        got.clear()
    return False


class Lock(unittest.TestCase):
    def test_this_test_sees_work_that_keeps_the_lock(self):
        self.assertFalse(is_free_during(lambda: sum(range(20_000))))

    def test_the_lock_is_free_while_packets_are_coded_and_corrected(self):
        payload = bytes(10_000_000)
        packet = _native.append_parity(payload, 200)
        self.assertTrue(is_free_during(lambda: _native.append_parity(payload, 200)))
        self.assertTrue(is_free_during(lambda: _native.correct(packet, 200)))

    def test_the_lock_is_free_while_a_window_is_decoded(self):
        # The last symbol determines all sources at once, in some 20 ms: longer than a busy machine lets a thread wait.
        sources = [bytes([number]) * 60_000 for number in range(255)]
        symbols = [_native.encode_window(sources, key, 15) for key in range(255)]

        def decode():
            window = _native.NativeWindow(0, 255, 255, 1 << 26)
            for key, symbol in enumerate(symbols):
                window.add_repair((0, 255), (key, 15), symbol)

        self.assertTrue(is_free_during(decode))


class Kept(unittest.TestCase):
    def test_threads_that_share_a_decoder_take_turns(self):
        sources = [bytes([number]) * 20_000 for number in range(40)]
        symbols = [_native.encode_window(sources, key, 15) for key in range(40)]
        window, rebuilt, failed = _native.NativeWindow(0, 64, 64, 1 << 26), [], []

        def add(keys):
            try:
                for key in keys:
                    rebuilt.extend(window.add_repair((0, 40), (key, 15), symbols[key]))
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=add, args=(range(first, 40, 4),)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        self.assertEqual(sorted(rebuilt), list(enumerate(sources)))


if __name__ == "__main__":
    unittest.main()
