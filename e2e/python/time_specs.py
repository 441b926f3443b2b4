"""Reads `form<TAB>spec<TAB>zone<TAB>start in seconds` lines and prints the first times of each, in seconds, as others read them.

`iso` is read by metomi-isodatetime, `cron` by cronsim.
"""

import sys
from datetime import datetime, timedelta, timezone
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim
from metomi.isodatetime.parsers import TimeRecurrenceParser

TIMES = 6
PARSER = TimeRecurrenceParser()


def iso(spec):
    return [int(point.seconds_since_unix_epoch) for point in islice(PARSER.parse(spec), TIMES)]


def cron(spec, zone, start):
    # Its times are later than the start; ours are at it or later.
    at = datetime.fromtimestamp(start, timezone.utc) - timedelta(seconds=1)
    found = CronSim(spec, at.astimezone(ZoneInfo(zone)))
    return [int(time.timestamp()) for time in islice(found, TIMES)]


for line in sys.stdin:
    form, spec, zone, start = line.rstrip("\n").split("\t")
    times = iso(spec) if form == "iso" else cron(spec, zone, int(start))
    print(" ".join(str(time) for time in times))
