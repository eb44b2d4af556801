"""A file over NORM (RFC 5740) from one host to another, by NRL's library as its guide starts it: the default block, congestion control on.

    norm_file.py send FILE ADDRESS         prints `sent` once the receiver has acknowledged all of it
    norm_file.py receive DIRECTORY ADDRESS prints `ready`, and the file's name once it is whole

The values are those of the library's own examples: segments of 1400 octets, 64 of them and 16 of parity a block, 1 MB of buffers.
Needs Debian's libnorm1.
"""

import ctypes
import sys

PORT, SENDER, RECEIVER = 6003, 1, 2
SEGMENT_BYTES, BLOCK, PARITY, BUFFER_BYTES = 1400, 64, 16, 1 << 20
# normApi.h, NormEventType: positions in the enumeration.
TX_WATERMARK_COMPLETED, RX_OBJECT_COMPLETED = 4, 20


class Event(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("session", ctypes.c_void_p), ("sender", ctypes.c_void_p), ("object", ctypes.c_void_p)]


def library():
    norm = ctypes.CDLL("libnorm.so.1")
    for name in ("NormCreateInstance", "NormCreateSession", "NormFileEnqueue"):
        getattr(norm, name).restype = ctypes.c_void_p
    return norm


def wait_for(norm, instance, wanted):
    event = Event()
    while norm.NormGetNextEvent(ctypes.c_void_p(instance), ctypes.byref(event), ctypes.c_bool(True)):
        if event.type == wanted:
            return event
    raise SystemExit("norm_file: the library ended")


def session_of(norm, address, node):
    instance = norm.NormCreateInstance(ctypes.c_bool(False))
    session = norm.NormCreateSession(ctypes.c_void_p(instance), address.encode(), ctypes.c_uint16(PORT), ctypes.c_uint32(node))
    return instance, ctypes.c_void_p(session)


def send(path, address):
    norm = library()
    instance, session = session_of(norm, address, SENDER)
    norm.NormSetCongestionControl(session, ctypes.c_bool(True), ctypes.c_bool(True))
    norm.NormAddAckingNode(session, ctypes.c_uint32(RECEIVER))
    norm.NormStartSender(session, ctypes.c_uint16(1), ctypes.c_uint32(BUFFER_BYTES), ctypes.c_uint16(SEGMENT_BYTES), ctypes.c_uint16(BLOCK),
                         ctypes.c_uint16(PARITY), ctypes.c_uint8(0))
    name = path.rsplit("/", 1)[-1].encode()
    queued = norm.NormFileEnqueue(session, path.encode(), name, ctypes.c_uint(len(name)))
    norm.NormSetWatermark(session, ctypes.c_void_p(queued), ctypes.c_bool(False))
    wait_for(norm, instance, TX_WATERMARK_COMPLETED)
    print("sent", flush=True)


def receive(directory, address):
    norm = library()
    instance, session = session_of(norm, address, RECEIVER)
    norm.NormSetCacheDirectory(ctypes.c_void_p(instance), f"{directory}/".encode())
    norm.NormSetDefaultUnicastNack(session, ctypes.c_bool(True))
    norm.NormStartReceiver(session, ctypes.c_uint32(BUFFER_BYTES))
    print("ready", flush=True)
    event = wait_for(norm, instance, RX_OBJECT_COMPLETED)
    name = ctypes.create_string_buffer(4096)
    norm.NormFileGetName(ctypes.c_void_p(event.object), name, ctypes.c_uint(len(name)))
    print(name.value.decode(), flush=True)


if __name__ == "__main__":
    {"send": send, "receive": receive}[sys.argv[1]](*sys.argv[2:])
