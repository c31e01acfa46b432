//! Confirmable messages whose keys contradict each other or the network; each replaces the last
//! keys of the flow of a valid scenario.

pub(crate) const COAP: &[(&str, &str)] = &[
    ("CoAP keys of another transport", "load = \"bulk\"\ncoap = {}\ndtls = {}"),
    ("CoAP keys of datagrams", "transport = \"datagram\"\nload = \"bulk\"\ndtls = {}"),
    (
        "TLS with CoAP",
        "transport = \"coap\"\ntls = {}\nload.poisson = { size = \"1 B\", every = \"1 s\" }",
    ),
    ("CoAP with a stack and bulk data", "transport = \"coap\"\nstack = \"plain\"\nload = \"bulk\""),
    ("CoAP messages of a program", "transport = \"coap\"\nload = \"external\""),
    (
        "CoAP with timers and sizes out of range",
        "transport = \"coap\"\nload.poisson = { size = \"1 B\", every = \"1 s\" }\n\
         coap = { header = \"3 B\", response = \"2 kB\", ack_timeout = \"0 s\", \
         ack_random_factor = 0.5, max_retransmit = 100 }",
    ),
    (
        "CoAP messages that do not fit with their headers",
        "transport = \"coap\"\nload.poisson = { size = \"1450 B\", every = \"1 s\" }\ndtls = {}",
    ),
    (
        "DTLS with sizes out of range and five flights",
        "transport = \"coap\"\nload.poisson = { size = \"1 B\", every = \"1 s\" }\n\
         dtls = { record = \"1 B\", flights = [\"1 B\", \"50 B\", \"50 B\", \"50 B\", \"2 kB\"] }",
    ),
    (
        "unknown version of DTLS",
        "transport = \"coap\"\nload.poisson = { size = \"1 B\", every = \"1 s\" }\n\
         dtls.version = \"1.1\"",
    ),
];
