//! Valid keys and types whose values contradict each other or the network.

const LINE_OF_MILES: &str =
    "power_line = { class = \"narrowband\", distance = \"2 miles\" }\nboth =";
const LINE_OF_SPANS: &str =
    "power_line = { class = \"broadband\", distance = \"2 km\", span = \"1 m\" }\nboth =";

pub(crate) const MEANING: &[(&str, &str, &str)] = &[
    ("empty title", "\"One meter\"", "\" \""),
    ("title of two lines", "\"One meter\"", "\"One\\nmeter\""),
    ("control character in the title", "\"One meter\"", "\"One \\u001b[31mmeter\""),
    (
        "control character in the description",
        "\"One meter\"",
        "\"One meter\"\ndescription = \"two\\nlines\\u0007\"",
    ),
    ("duration of zero", "\"60 s\"", "\"0 s\""),
    ("warm-up too long", "\"60 s\"", "\"60 s\"\nwarmup = \"1 min\""),
    ("no replications", "\"60 s\"", "\"60 s\"\nreplications = 0"),
    (
        "replications until an interval of zero",
        "\"60 s\"",
        "\"60 s\"\nreplications = { until = \"0 %\", max = 10 }",
    ),
    (
        "largest number of replications below the smallest",
        "\"60 s\"",
        "\"60 s\"\nreplications = { until = \"5 %\", max = 3 }",
    ),
    (
        "interval of one replication",
        "\"60 s\"",
        "\"60 s\"\nreplications = { until = \"5 %\", min = 1, max = 3 }",
    ),
    (
        "replication to record that a point may lack",
        "\"60 s\"",
        "\"60 s\"\nreplications = { until = \"5 %\", max = 30 }\nrecord.replication = 7",
    ),
    ("no nodes", "[node.meter]\n\n[node.head]", "[node]"),
    ("sampling interval of zero", "\"60 s\"", "\"60 s\"\nrecord.interval = \"0 s\""),
    ("sampling interval too short", "\"60 s\"", "\"60 s\"\nrecord.interval = \"1 ns\""),
    ("unknown flow to log", "\"60 s\"", "\"60 s\"\nrecord.events = [\"readings\"]"),
    (
        "event log of a group",
        "load = \"bulk\"",
        "load = \"bulk\"\ncount = 3\n[record]\nevents = [\"reading\"]",
    ),
    (
        "event log of datagrams",
        "stack = \"plain\"\nload = \"bulk\"",
        "transport = \"datagram\"\nload.periodic = { size = \"1 B\", every = \"1 s\" }\n[record]\n\
         events = [\"reading\"]",
    ),
    (
        "unknown flow of a distribution",
        "\"60 s\"",
        "\"60 s\"\nrecord.distribution = [\"readings\"]",
    ),
    ("comparison of one connection", "\"60 s\"", "\"60 s\"\nrecord.fairness.all = [\"reading\"]"),
    (
        "comparison with the name of a flow",
        "\"60 s\"",
        "\"60 s\"\nrecord.fairness.reading = [\"reading\"]",
    ),
    (
        "comparison of a flow with itself",
        "\"60 s\"",
        "\"60 s\"\nrecord.fairness.all = [\"reading\", \"reading\"]",
    ),
    ("multipath with one link", "[node.head]", "[node.head]\necmp = true"),
    ("unknown link to record", "\"60 s\"", "\"60 s\"\nrecord.pcap = [\"feeder\", \"feder\"]"),
    ("a name with a space", "[node.head]", "[node.head]\n[node.\"the head\"]"),
    ("an empty name", "[node.head]", "[node.head]\n[node.\"\"]"),
    ("group without members", "[node.meter]", "[node.meter]\ncount = 0"),
    ("link to an unknown node", "to = \"head\"\nboth", "to = \"haed\"\nboth"),
    ("link to itself", "to = \"head\"\nboth", "to = \"meter\"\nboth"),
    ("link without direction", "both = { rate = \"3 Mbit/s\", delay = \"25 ms\" }\n", ""),
    ("both and forward", "both =", "forward = { rate = \"1 kbit/s\" }\nboth ="),
    ("aggregator without buffer space", "[node.head]", "[node.head]\naggregator.buffer = \"0 B\""),
    ("aggregator with an unknown stack", "[node.head]", "[node.head]\naggregator.stack = \"plan\""),
    (
        "proxy without buffer space",
        "[node.head]",
        "[node.head.proxy]\nmode = \"split\"\nbuffer = \"1 kB\"",
    ),
    ("proxy of an unknown kind", "[node.head]", "[node.head.proxy]\nmode = \"cache\""),
    (
        "proxy for an unknown flow",
        "[node.head]",
        "[node.head.proxy]\nmode = \"snoop\"\nflows = [\"fiel\"]",
    ),
    (
        "proxy at an aggregator",
        "[node.head]",
        "[node.head]\naggregator = {}\nproxy.mode = \"reflect\"",
    ),
    (
        "proxy that crashes while it is down",
        "[node.head]",
        "[node.head.proxy]\nmode = \"reflect\"\n\
         crash = [{ at = \"1 s\", down = \"5 s\" }, { at = \"3 s\" }]",
    ),
    (
        "hybrid router without a peer, and with other links",
        "[node.head]",
        "[node.head.router]\npeer = \"meter\"\nlinks = [\"feeder\", \"feder\", \"feeder\"]",
    ),
    (
        "hybrid router that is its own peer",
        "[node.head]",
        "[node.head.router]\npeer = \"head\"\nlinks = [\"feeder\", \"feeder\"]",
    ),
    (
        "hybrid router with wrong times and classes",
        "[node.meter]\n\n[node.head]",
        "[node.meter.router]\npeer = \"head\"\nlinks = [\"feeder\"]\n[node.head.router]\n\
         peer = \"meter\"\nlinks = [\"feeder\"]\nprobe_interval = \"500 ms\"\nhold_time = \"0 s\"\n\
         class.a = { links = [\"spare\"] }\nclass.b = { flows = [\"read\"], links = [] }",
    ),
    (
        "synchronised with start_spread",
        "load = \"bulk\"",
        "count = 3\nstart_spread = \"9 s\"\nload.poisson = { size = \"1 B\", every = \"1 s\", \
         synchronised = true }",
    ),
    ("deadline of a byte stream", "stack = \"plain\"", "deadline = \"1 s\""),
    (
        "event that recurs before its reports end",
        "\"bulk\"",
        "{ burst = { size = \"1 B\", at = \"1 s\", count = 3, gap = \"5 s\", every = \"10 s\" } }",
    ),
    (
        "event that affects no member",
        "\"bulk\"",
        "{ burst = { size = \"1 B\", at = \"1 s\", count = 0, share = \"0 %\" } }",
    ),
    (
        "period outside the range of the profile",
        "\"bulk\"",
        "{ application = { profile = \"pricing\", every = \"1 s\" } }",
    ),
    ("unknown profile", "\"bulk\"", "{ application = { profile = \"price\" } }"),
    ("deadline of zero", "stack = \"plain\"", "deadline = \"0 s\""),
    (
        "burst of a datagram without a rate",
        "stack = \"plain\"\nload = \"bulk\"",
        "load.on_off = { size = \"1 B\", on = \"1 s\", off = \"1 s\" }\ntransport = \"datagram\"",
    ),
    (
        "connections of a byte stream",
        "load = \"bulk\"",
        "load = \"bulk\"\nconnection = \"per_message\"",
    ),
    (
        "an exchange that the other end begins",
        "load = \"bulk\"",
        "load.exchange = { steps = [{ writer = \"to\", size = \"1 B\", after = \"1 s\" }] }",
    ),
    ("an exchange without steps", "load = \"bulk\"", "load.exchange = { steps = [] }"),
    (
        "an exchange with two times",
        "load = \"bulk\"",
        "load.exchange = { steps = [{ writer = \"from\", size = \"1 B\" }], every = \"1 s\", \
         pause = \"1 s\" }",
    ),
    (
        "an exchange on connections that close",
        "load = \"bulk\"",
        "connection = \"per_message\"\nload.exchange = { steps = [{ writer = \"from\", size = \
         \"1 B\" }, { writer = \"from\", size = \"1 B\" }] }",
    ),
    (
        "an exchange of datagrams",
        "stack = \"plain\"\nload = \"bulk\"",
        "transport = \"datagram\"\nload.modbus = { registers = 3, every = \"1 s\" }",
    ),
    ("too many registers", "load = \"bulk\"", "load.modbus = { registers = 126, every = \"1 s\" }"),
    (
        "an acknowledgement after more than k frames",
        "load = \"bulk\"",
        "load.iec_104 = { values = 17, every = \"0 s\", k = 4, w = 5 }",
    ),
    (
        "publications with wrong numbers, on connections for each message",
        "load = \"bulk\"",
        "connection = \"per_message\"\nload.mqtt = { size = \"0 B\", every = \"0 s\", qos = 3, \
         topic = \"0 B\", in_flight = 0, keep_alive = \"70000 s\" }",
    ),
    (
        "publications with a keep alive below a second",
        "load = \"bulk\"",
        "load.mqtt = { size = \"1 B\", every = \"1 s\", keep_alive = \"500 ms\" }",
    ),
    (
        "a subscription of a flow that does not publish",
        "load = \"bulk\"",
        "count = 2\nload.mqtt_subscription = { publications = \"read\", qos = 3 }",
    ),
    (
        "an acknowledgement after the timeout t1",
        "load = \"bulk\"",
        "load.iec_104 = { values = 4, every = \"1 s\", t1 = \"10 s\" }",
    ),
    (
        "a test frame before the timeout t1, on connections that close",
        "load = \"bulk\"",
        "connection = \"per_message\"\n\
         load.iec_104 = { values = 4, every = \"1 s\", t1 = \"30 s\", controlled = \"to\" }",
    ),
    (
        "acknowledgements of a byte stream, on connections for each message",
        "load = \"bulk\"",
        "connection = \"per_message\"\nacknowledgement = { size = \"0 B\", timeout = \"0 s\", \
         window = 2 }\n\
         load = \"bulk\"",
    ),
    (
        "acknowledgements of a load that has answers",
        "load = \"bulk\"",
        "acknowledgement = { size = \"9 B\", timeout = \"1 s\", window = 0, \
         retransmissions = 9999 }\n\
         load.modbus = { registers = 3, every = \"1 s\" }",
    ),
    (
        "acknowledgements of datagrams",
        "stack = \"plain\"\nload = \"bulk\"",
        "transport = \"coap\"\nacknowledgement = { size = \"9 B\", timeout = \"1 s\" }\n\
         load.periodic = { size = \"9 B\", every = \"1 s\" }",
    ),
    (
        "connections of datagrams",
        "stack = \"plain\"\nload = \"bulk\"",
        "transport = \"datagram\"\nload.periodic = { size = \"1 B\", every = \"1 s\" }\ntls = {}",
    ),
    (
        "connections with limits of zero",
        "load = \"bulk\"",
        "load.periodic = { size = \"1 B\", every = \"1 s\" }\nlocal_ports = 0\n\
         connection = { idle_timeout = \"0 s\" }\naccept = { per_second = 0, backlog = 0 }\n\
         reconnect = { timeout = \"0 s\", pause = \"0 s\", factor = 0 }",
    ),
    (
        "Fast Open of a connection that stays open",
        "load = \"bulk\"",
        "load.periodic = { size = \"1 B\", every = \"1 s\" }\nfast_open = true\ntls = {}",
    ),
    (
        "Fast Open of messages that wait for an open connection",
        "load = \"bulk\"",
        "load.periodic = { size = \"1 B\", every = \"1 s\" }\nfast_open = true\n\
         connection = \"per_message\"\nacknowledgement = { size = \"1 B\", timeout = \"1 s\" }",
    ),
    (
        "idle connections with limits of zero",
        "load = \"bulk\"",
        "load.periodic = { size = \"1 B\", every = \"1 s\" }\nnat.idle_timeout = \"0 s\"\n\
         keep_alive = { idle = \"0 s\", interval = \"0 s\", probes = 0 }\n\
         user_timeout = \"0 s\"",
    ),
    (
        "a NAT for datagrams",
        "stack = \"plain\"\nload = \"bulk\"",
        "transport = \"datagram\"\nload.periodic = { size = \"1 B\", every = \"1 s\" }\nnat = {}",
    ),
    (
        "largest pause below the first",
        "load = \"bulk\"",
        "load.periodic = { size = \"1 B\", every = \"1 s\" }\n\
         reconnect = { pause = \"2 min\" }",
    ),
    (
        "TLS with a certificate of a megabyte",
        "load = \"bulk\"",
        "load.periodic = { size = \"1 B\", every = \"1 s\" }\ntls.certificate = \"1 MB\"",
    ),
    (
        "TLS without flights",
        "load = \"bulk\"",
        "load.periodic = { size = \"1 B\", every = \"1 s\" }\ntls.flights = []",
    ),
    (
        "unknown version of TLS",
        "load = \"bulk\"",
        "load.periodic = { size = \"1 B\", every = \"1 s\" }\ntls.version = \"1.1\"",
    ),
    (
        "unknown connection policy",
        "load = \"bulk\"",
        "load.periodic = { size = \"1 B\", every = \"1 s\" }\nconnection = \"per-message\"",
    ),
    ("local ports of one connection", "load = \"bulk\"", "load = \"bulk\"\nlocal_ports = 100"),
    (
        "connections without a handshake",
        "stack = \"plain\"\nload = \"bulk\"",
        "stack = \"open\"\nload.periodic = { size = \"1 B\", every = \"1 s\" }\n\
         connection = \"per_message\"\n[stack.open]\nhandshake = false",
    ),
    (
        "event log of managed connections",
        "load = \"bulk\"",
        "load.periodic = { size = \"1 B\", every = \"1 s\" }\nconnection = \"per_message\"\n\
         [record]\nevents = [\"reading\"]",
    ),
    ("rate of zero", "\"3 Mbit/s\"", "\"0 bit/s\""),
    ("lost packet 0", "delay =", "loss.packets = [3, 0], delay ="),
    (
        "a state that never changes",
        "delay =",
        "loss.gilbert_elliott = { good_to_bad = \"0 %\", bad_to_good = \"0 %\" }, delay =",
    ),
    (
        "bursts in time and per packet",
        "delay =",
        "loss.gilbert_elliott = { mean_good = \"10 s\", bad_to_good = \"10 %\" }, delay =",
    ),
    (
        "a bad state without duration",
        "delay =",
        "loss.gilbert_elliott = { mean_good = \"10 s\", mean_bad = \"0 s\" }, delay =",
    ),
    ("zero outage length", "delay =", "outage = [{ start = \"1 s\", length = \"0 s\" }], delay ="),
    (
        "route changes at any time",
        "delay =",
        "route_change = { every = \"0 s\", delay = \"5 ms\" }, delay =",
    ),
    (
        "outage without end",
        "delay =",
        "outage = [{ start = \"1 s\", length = \"2 s\", every = \"2 s\" }], delay =",
    ),
    (
        "unknown medium",
        "both =",
        "medium = \"stret\"\n[medium.street.csma_ca]\n[link.feeder.both]\nrate = \"1 Mbit/s\"\n#",
    ),
    (
        "contention with managed queue, pause and without queue space",
        "both =",
        "medium = \"street\"\n[medium.street.csma_ca]\n[link.feeder.both]\naqm.codel = {}\n\
         queue = \"0 packets\"\noutage = [{ start = \"1 s\", length = \"1 s\", mode = \"hold\" }]\n\
         rate = \"1 Mbit/s\"\n#",
    ),
    (
        "contention without slots, windows and attempts",
        "[stack.plain]",
        "[medium.street.csma_ca]\nslot = \"0 s\"\nwindows = [0, 8, 8, 8]\nattempts = 0\n\
         [stack.plain]",
    ),
    (
        "contention without a stage",
        "[stack.plain]",
        "[medium.street.csma_ca]\nwindows = []\ndeferral = []\n[stack.plain]",
    ),
    (
        "deferral counters of other stages",
        "[stack.plain]",
        "[medium.street.csma_ca]\ndeferral = [0, 1]\n[stack.plain]",
    ),
    (
        "standard of contention that is unknown",
        "[stack.plain]",
        "[medium.street.csma_ca]\nstandard = \"ieee-802.11\"\n[stack.plain]",
    ),
    ("time slots of zero", "[stack.plain]", "[medium.street.tdma]\nslot = \"0 s\"\n[stack.plain]"),
    (
        "time slots without time for transmission",
        "[stack.plain]",
        "[medium.street.tdma]\nslot = \"1 ms\"\nguard = \"1 ms\"\n[stack.plain]",
    ),
    (
        "time slot of a direction that is not on the medium",
        "both =",
        "medium = \"street\"\n[medium.street.tdma]\nslot = \"1 ms\"\n\
         order = [\"feeder.forward\", \"feder.reverse\"]\n[link.feeder.both]\n\
         rate = \"1 Mbit/s\"\n#",
    ),
    (
        "direction without a time slot",
        "both =",
        "medium = \"street\"\n[medium.street.tdma]\nslot = \"1 ms\"\n\
         order = [\"feeder.forward\"]\n[link.feeder.both]\nrate = \"1 Mbit/s\"\n#",
    ),
    (
        "rate of zero after a change",
        "delay =",
        "rate_change = [{ at = \"5 s\", rate = \"0 bit/s\" }], delay =",
    ),
    (
        "recurring change without a period",
        "delay =",
        "rate_change = [{ at = \"5 s\", rate = \"1 Mbit/s\", every = \"0 s\" }], delay =",
    ),
    (
        "more changes of a rate than a run can have",
        "delay =",
        "rate_change = [{ at = \"0 s\", rate = \"1 Mbit/s\", every = \"1 us\" }], delay =",
    ),
    (
        "change of a rate without a time",
        "delay =",
        "rate_change = [{ rate = \"1 Mbit/s\" }], delay =",
    ),
    ("rate and trace", "delay =", "trace.mahimahi.file = \"a.mahi\", delay ="),
    ("trace without a file", "rate = \"3 Mbit/s\"", "trace.mahimahi.file = \"\""),
    (
        "trace with changes and pauses",
        "rate = \"3 Mbit/s\"",
        "trace.steps.file = \"a.csv\", \
         rate_change = [{ at = \"5 s\", rate = \"1 Mbit/s\" }], \
         outage = [{ start = \"5 s\", length = \"1 s\", mode = \"hold\" }]",
    ),
    (
        "trace with a period of zero",
        "rate = \"3 Mbit/s\"",
        "trace.steps = { file = \"a.csv\", every = \"0 s\" }",
    ),
    (
        "quantiles with a rate and a loss",
        "delay =",
        "loss.bernoulli = \"1 %\", quality = { rate = [\"1 kbit/s\", \"2 kbit/s\"], \
         loss = [\"1 %\", \"2 %\"] }, delay =",
    ),
    ("quality without quantiles", "delay =", "quality = {}, delay ="),
    (
        "quality with a file and lists, and ranks that do not ascend",
        "rate = \"3 Mbit/s\"",
        "quality = { file = \" \", rank = [\"0 %\", \"50 %\", \"50 %\"], \
         rate = [\"1 kbit/s\", \"2 kbit/s\"] }",
    ),
    ("one quantile", "rate = \"3 Mbit/s\"", "quality.rate = [\"1 kbit/s\"]"),
    (
        "quantile of zero of a shared link",
        "both = { rate = \"3 Mbit/s\"",
        "shared = true\nboth = { quality.rate = [\"0 bit/s\", \"1 kbit/s\"]",
    ),
    (
        "discontinuous reception of a managed queue",
        "delay =",
        "aqm.red = {}, drx = { cycle = \"0 s\", inactivity = \"1 s\" }, delay =",
    ),
    (
        "radio interface with impossible times",
        "delay =",
        "radio = { standard = \"lte\", slot = \"0 s\", round_trip = \"0 s\", transmissions = 0, \
         request_every = \"0 s\" }, delay =",
    ),
    (
        "radio interface with blocks longer than the round trip, and a grant without requests",
        "delay =",
        "scheduler.class.x = {}, radio = { standard = \"nr\", slot = \"5 ms\", \
         grant_delay = \"4 ms\" }, delay =",
    ),
    ("radio interface without a standard", "delay =", "radio = {}, delay ="),
    (
        "handover without times",
        "both = {",
        "medium = \"street\"\nhandover = { interruption = \"0 s\" }\nboth = {",
    ),
    (
        "handovers that overlap",
        "both = {",
        "handover = { every = \"40 ms\", at = [\"1 s\"], interruption = \"50 ms\" }\nboth = {",
    ),
    (
        "discontinuous reception of a shared link",
        "both = { rate = \"3 Mbit/s\",",
        "shared = true\nboth = { drx = { cycle = \"1 s\", inactivity = \"1 s\" }, \
         rate = \"3 Mbit/s\",",
    ),
    ("trace in an unknown format", "rate = \"3 Mbit/s\"", "trace.json.file = \"a.json\""),
    (
        "paired with an unknown direction",
        "delay =",
        "load_latency = { paired_with = \"feeder.bakward\" }, delay =",
    ),
    (
        "both directions paired with the forward one",
        "delay =",
        "load_latency = { paired_with = \"feeder.forward\" }, delay =",
    ),
    (
        "both directions paired with the reverse one",
        "delay =",
        "load_latency = { paired_with = \"feeder.reverse\" }, delay =",
    ),
    (
        "paired with itself",
        "both = { rate = \"3 Mbit/s\",",
        "reverse = { rate = \"3 Mbit/s\" }\nforward = { rate = \"3 Mbit/s\", load_latency = { \
         paired_with = \"feeder.forward\" },",
    ),
    ("oscillation period of zero", "delay =", "load_latency = { period = \"0 s\" }, delay ="),
    ("latency lower under load", "delay =", "load_latency = { idle = \"3 s\" }, delay ="),
    (
        "compression to nothing",
        "delay =",
        "compression = { header = \"0 B\", compressible = \"0 B\", payload_ratio = 0.0, \
         overhead = \"1 MB\" }, delay =",
    ),
    (
        "shaper rate of zero",
        "delay =",
        "shaper = { rate = \"0 bit/s\", burst = \"0 B\", queue = \"0 packets\" }, delay =",
    ),
    (
        "share of an unknown flow",
        "delay =",
        "shaper = { rate = \"1 Mbit/s\", share.readings.guarantee = \"1 Mbit/s\" }, delay =",
    ),
    (
        "guarantee of zero, and a limit above the rate",
        "delay =",
        "shaper = { rate = \"1 Mbit/s\", share.reading = { guarantee = \"0 bit/s\", \
         limit = \"2 Mbit/s\" } }, delay =",
    ),
    (
        "guarantees above the rate",
        "delay =",
        "shaper = { rate = \"1 Mbit/s\", share.reading.guarantee = \"2 Mbit/s\" }, delay =",
    ),
    (
        "share of a flow on another path",
        "[stack.plain]",
        "[link.spare]\nfrom = \"meter\"\nto = \"head\"\nboth = { rate = \"1 Mbit/s\", shaper = { \
         rate = \"1 Mbit/s\", share.reading.guarantee = \"1 Mbit/s\" } }\n\n[stack.plain]",
    ),
    (
        "shaper before the links of a group",
        "[node.meter]\n\n[node.head]\n\n[link.feeder]\nfrom = \"meter\"\nto = \"head\"\nboth = {",
        "[node.meter]\ncount = 10\n\n[node.head]\n\n[link.feeder]\nfrom = \"meter\"\n\
         to = \"head\"\nboth = { shaper.rate = \"1 Mbit/s\",",
    ),
    (
        "scheduler without a class for other packets",
        "delay =",
        "scheduler.class.fast = { dscp = [\"EF\"], priority = 0 }, delay =",
    ),
    (
        "scheduler with two classes for other packets",
        "delay =",
        "scheduler = { quantum = \"0 B\", class = { one = { weight = 0 }, other = {} } }, delay =",
    ),
    (
        "scheduler with classes that select the same packets",
        "delay =",
        "scheduler.class = { a = { dscp = [46], priority = 1 }, b = { dscp = [\"EF\"], \
         priority = 1, weight = 2 }, other = {} }, delay =",
    ),
    (
        "scheduler with an unknown flow",
        "delay =",
        "scheduler.class = { a = { flows = [\"readings\"] }, other = {} }, delay =",
    ),
    (
        "scheduler with a flow on another path",
        "[stack.plain]",
        "[link.spare]\nfrom = \"meter\"\nto = \"head\"\nboth = { rate = \"1 Mbit/s\", \
         scheduler.class = { a = { flows = [\"reading\"] }, other = {} } }\n\n[stack.plain]",
    ),
    (
        "scheduler with token buckets of zero",
        "delay =",
        "scheduler.class = { a = { dscp = [1], rate = \"0 bit/s\", burst = \"0 B\" }, \
         other = { burst = \"3 kB\" } }, delay =",
    ),
    (
        "scheduler with RED, and a second queue",
        "delay =",
        "aqm.codel = {}, shaper.rate = \"1 Mbit/s\", scheduler.class.other.aqm.red = {}, delay =",
    ),
    ("MTU of zero", "delay =", "mtu = \"0 B\", delay ="),
    (
        "MTU below that of IPv6",
        "delay = \"25 ms\" }",
        "delay = \"25 ms\", mtu = \"576 B\" }\n[flow.six]\nfrom = \"meter\"\nto = \"head\"\n\
         load = \"bulk\"\nip = 6",
    ),
    ("a response to large packets without MTU", "delay =", "packet_too_big = \"icmp\", delay ="),
    ("a clamp below the smallest MSS", "delay =", "mss_clamp = \"60 B\", delay ="),
    (
        "datagram larger than all fragments",
        "stack = \"plain\"\nload = \"bulk\"",
        "transport = \"datagram\"\nload.periodic = { size = \"70 kB\", every = \"1 s\" }\n\
         [link.spare]\nfrom = \"meter\"\nto = \"head\"\nboth = { rate = \"1 Mbit/s\", \
         mtu = \"1500 B\" }",
    ),
    ("an unknown code point", "load = \"bulk\"", "dscp = \"EV\"\nload = \"bulk\""),
    ("a code point out of range", "load = \"bulk\"", "dscp = 64\nload = \"bulk\""),
    (
        "critical throughput of zero",
        "delay =",
        "load_latency = { critical = \"0 bit/s\" }, delay =",
    ),
    (
        "power line with both and forward",
        "both = { rate",
        "power_line.class = \"broadband\"\nforward = {}\nboth = { rate",
    ),
    ("unknown power line class", "both =", "power_line.class = \"wideband\"\nboth ="),
    ("distance in an unknown unit", "both =", LINE_OF_MILES),
    (
        "distance of zero",
        "both =",
        "power_line = { class = \"broadband\", distance = \"0 m\" }\nboth =",
    ),
    ("too many spans", "both =", LINE_OF_SPANS),
    (
        "span length of zero",
        "both =",
        "power_line = { class = \"broadband\", span = \"0 m\" }\nboth =",
    ),
    (
        "budget without shadowing",
        "both =",
        "power_line = { class = \"broadband\", budget = \"9 dB\" }\nboth =",
    ),
    (
        "negative attenuation",
        "both =",
        "power_line = { class = \"broadband\", shadowing = true, \
         attenuation_per_km = \"-1 dB\" }\nboth =",
    ),
    (
        "negative deviation of shadowing",
        "delay =",
        "shadowing = { margin = \"10 dB\", deviation = \"-4 dB\" }, delay =",
    ),
    (
        "coherence time of zero",
        "delay =",
        "shadowing = { margin = \"10 dB\", deviation = \"4 dB\", coherence = \"0 s\" }, delay =",
    ),
    (
        "no spans",
        "delay =",
        "shadowing = { margin = \"10 dB\", deviation = \"4 dB\", spans = 0 }, delay =",
    ),
    (
        "margin in dBm",
        "delay =",
        "shadowing = { margin = \"10 dBm\", deviation = \"4 dB\" }, delay =",
    ),
    ("zero noise length", "delay =", "noise = [{ length = \"0 s\", gap = \"1 s\" }], delay ="),
    ("noise gap of zero", "delay =", "noise = [{ length = \"1 s\", gap = \"0 s\" }], delay ="),
    (
        "too many noise bursts",
        "delay =",
        "noise = [{ length = \"1 us\", gap = \"1 us\" }], delay =",
    ),
    ("RED in two units", "delay =", "aqm.red = { min = \"5 kB\" }, delay ="),
    ("RED max<min", "delay =", "aqm.red = { min = \"15 packets\", max = \"5 packets\" }, delay ="),
    ("RED thresholds above the limit", "delay =", "queue = \"5 packets\", aqm.red = {}, delay ="),
    ("RED weight of zero", "delay =", "aqm.red = { weight = 0 }, delay ="),
    ("RED packet size of zero", "delay =", "aqm.red = { packet = \"0 B\" }, delay ="),
    ("CoDel target above the interval", "delay =", "aqm.codel = { target = \"1 s\" }, delay ="),
    ("PIE update interval of zero", "delay =", "aqm.pie = { update = \"0 s\" }, delay ="),
    ("PIE with a negative alpha", "delay =", "aqm.pie = { alpha = -1 }, delay ="),
    ("FQ-CoDel quantum of zero", "delay =", "aqm.fq_codel = { quantum = \"0 B\" }, delay ="),
    ("FQ-CoDel without queues", "delay =", "aqm.fq_codel = { flows = 0 }, delay ="),
    ("an unknown queueing discipline", "delay =", "aqm.fqcodel = {}, delay ="),
    ("MSS of zero", "congestion_control = \"reno\"", "mss = \"0 B\""),
    ("MSS too large", "congestion_control = \"reno\"", "mss = \"64 KiB\""),
    ("headers and options above 255 B", "congestion_control = \"reno\"", "header = \"216 B\""),
    (
        "MSS with headers above a packet",
        "congestion_control = \"reno\"",
        "header = \"100 B\"\nmss = \"65495 B\"",
    ),
    (
        "headers above a packet with an MSS",
        "congestion_control = \"reno\"",
        "header = \"70000 B\"\nmss = \"1460 B\"",
    ),
    ("dupthresh of zero", "congestion_control = \"reno\"", "dupthresh = 0"),
    ("ack_every of zero", "congestion_control = \"reno\"", "ack_every = 0"),
    ("ack_every too large", "congestion_control = \"reno\"", "ack_every = 256"),
    ("rto_min > rto_max", "congestion_control = \"reno\"", "rto_min = \"2 s\"\nrto_max = \"1 s\""),
    ("Vegas alpha > beta", "congestion_control = \"reno\"", "vegas_alpha = 4\nvegas_beta = 2.5"),
    ("Vegas alpha above beta of profile linux", "congestion_control = \"reno\"", "vegas_alpha = 5"),
    (
        "Vegas beta below alpha of profile rfc",
        "congestion_control = \"reno\"",
        "profile = \"rfc\"\nvegas_beta = 0.5",
    ),
    ("Vegas alpha of zero", "congestion_control = \"reno\"", "vegas_alpha = 0\nvegas_beta = 0"),
    ("negative Vegas gamma", "congestion_control = \"reno\"", "vegas_gamma = -1"),
    ("Vegas gamma that is not a number", "congestion_control = \"reno\"", "vegas_gamma = nan"),
    (
        "MEDX with delayed acknowledgements",
        "congestion_control = \"reno\"",
        "congestion_control = \"medx\"\ndelayed_ack = \"40 ms\"",
    ),
    (
        "MEDX with timestamps",
        "congestion_control = \"reno\"",
        "congestion_control = \"medx\"\ntimestamps = true",
    ),
    ("MEDX weight of one", "congestion_control = \"reno\"", "medx_alpha = 1.0"),
    ("MEDX beta of zero", "congestion_control = \"reno\"", "medx_beta = 0.0"),
    ("MEDX with one delay", "congestion_control = \"reno\"", "medx_buffer = 1"),
    ("window of zero", "congestion_control = \"reno\"", "receive_window = \"0 segments\""),
    ("window above that of TCP", "congestion_control = \"reno\"", "receive_window = \"2 GiB\""),
    (
        "initial window above that of TCP",
        "congestion_control = \"reno\"",
        "initial_window = \"4000000 segments\"",
    ),
    (
        "fixed window with another congestion control",
        "congestion_control = \"reno\"",
        "congestion_control = \"reno\"\nfixed_window = \"9 segments\"",
    ),
    (
        "no flows",
        "[flow.reading]\nfrom = \"meter\"\nto = \"head\"\nstack = \"plain\"\nload = \"bulk\"",
        "[flow]",
    ),
    (
        "flow from an unknown node",
        "from = \"meter\"\nto = \"head\"\nstack",
        "from = \"metre\"\nto = \"head\"\nstack",
    ),
    ("flow to itself", "to = \"head\"\nstack", "to = \"meter\"\nstack"),
    ("unknown stack", "stack = \"plain\"", "stack = \"plane\""),
    ("flow count of zero", "stack = \"plain\"", "count = 0"),
    ("flow after the end", "stack = \"plain\"", "start = \"2 min\""),
    ("one-way link", "both =", "forward ="),
    ("one-way link in the reverse direction", "both =", "reverse ="),
    (
        "nodes without a connecting link",
        "[node.head]",
        "[node.head]\n[node.far]\n[flow.lost]\nfrom = \"far\"\nto = \"head\"\nload = \"bulk\"",
    ),
    (
        "path through a group",
        "[link.feeder]",
        "[node]\ngroup.count = 3\nfar = {}\n[link]\na = { from = \"head\", to = \"group\", \
         both.rate = \"1 Mbit/s\" }\nb = { from = \"group\", to = \"far\", \
         both.rate = \"1 Mbit/s\" }\n\
         [flow.lost]\nfrom = \"head\"\nto = \"far\"\nload = \"bulk\"\n[link.feeder]",
    ),
    ("unknown link in a route", "stack = \"plain\"", "route = [\"feedr\"]"),
    ("empty route", "stack = \"plain\"", "route = []"),
    ("route that returns to its start", "stack = \"plain\"", "route = [\"feeder\", \"feeder\"]"),
    ("message size of zero", "\"bulk\"", "{ periodic = { size = \"0 B\", every = \"1 s\" } }"),
    ("period of zero", "\"bulk\"", "{ poisson = { size = \"1 B\", every = \"0 s\" } }"),
    ("datagram with a bulk load", "stack = \"plain\"", "transport = \"datagram\""),
    (
        "datagram with a stack",
        "load = \"bulk\"",
        "load.poisson = { size = \"1 B\", every = \"1 s\" }\ntransport = \"echo\"",
    ),
    (
        "datagram too large",
        "stack = \"plain\"\nload = \"bulk\"",
        "load.poisson = { size = \"64 KiB\", every = \"1 s\" }\ntransport = \"echo\"",
    ),
    (
        "several errors",
        "congestion_control = \"reno\"\n\n[flow.reading]",
        "dupthresh = 0\nmss = \"0 B\"\n\n[flow.reading]\ncount = 0",
    ),
];
