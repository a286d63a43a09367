"""Decodes an event file of TensorBoard without TensorFlow and prints a line of JSON an event.

Written from the formats, not from our writer: TFRecord (length, its checksum, data, its checksum;
CRC-32C bit by bit) and protobuf's wire types.
"""
import json
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            low = (crc ^ (byte >> bit)) & 1
            crc = (crc >> 1) ^ (0x82F63B78 if low else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            (value,) = struct.unpack_from("<d", data, at)
            at += 8
        elif key & 7 == 5:
            (value,) = struct.unpack_from("<f", data, at)
            at += 4
        elif key & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
            assert len(value) == size
        else:
            raise ValueError(f"wire type {key & 7}")
        yield key >> 3, value


def event(data):
    out = {}
    for field, value in fields(data):
        if field == 1:
            out["wall_time"] = value
        elif field == 2:
            out["step"] = value
        elif field == 3:
            out["file_version"] = value.decode()
        elif field == 5:
            for _, item in fields(value):
                scalar = dict(fields(item))
                out[scalar[1].decode()] = scalar[2]
        elif field == 7:
            out["session_status"] = dict(fields(value))[1]
        else:
            raise ValueError(f"field {field}")
    return out


def main(path):
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        size, check = struct.unpack_from("<QI", data, at)
        assert check == masked(data[at : at + 8]), f"checksum of the length at {at}"
        record = data[at + 12 : at + 12 + size]
        (check,) = struct.unpack_from("<I", data, at + 12 + size)
        assert check == masked(record), f"checksum of the record at {at}"
        at += size + 16
        print(json.dumps(event(record)))


assert crc32c(b"123456789") == 0xE3069283
main(sys.argv[1])
