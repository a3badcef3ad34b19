"""Check sums of several widths, in one call and in parts."""

import random
import sys

from crccheck.crc import Crc5Usb, Crc8, Crc16Modbus, Crc24, Crc32, Crc32Bzip2, Crc64

chance = random.Random(int(sys.argv[1]))
data = chance.randbytes(120_000)
for kind in (Crc32, Crc16Modbus, Crc64, Crc8, Crc24, Crc5Usb, Crc32Bzip2):
    parts = kind()
    parts.process(data[:700])
    parts.process(list(data[700:900]))
    print(kind.__name__, kind.calchex(data[: chance.randrange(50_000, 120_000)]), parts.finalhex(), kind.calchex(b""))
