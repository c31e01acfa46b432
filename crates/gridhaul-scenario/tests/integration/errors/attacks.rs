//! Attacks whose values contradict each other or the network; each is appended to a valid scenario.

pub(crate) const ATTACKS: &[(&str, &str)] = &[
    ("attack without an action", "[attack.x]\nstart = \"1 s\"\nlength = \"1 s\""),
    (
        "attack of an unknown kind",
        "[attack.x]\nstart = \"1 s\"\nlength = \"1 s\"\naction.replay = { link = \"feeder\" }",
    ),
    (
        "attack of no length that recurs",
        "[attack.x]\nstart = \"1 s\"\nlength = \"0 s\"\nevery = \"0 s\"\n\
         action.drop.link = \"feeder\"",
    ),
    (
        "attack with an invalid name",
        "[attack.\"the bots\"]\nstart = \"1 s\"\nlength = \"1 s\"\naction.drop.link = \"feeder\"",
    ),
    (
        "attack on an unknown link and an unknown flow",
        "[attack.x]\nstart = \"1 s\"\nlength = \"1 s\"\n\
         action.drop = { link = \"feder.forward\", flows = [\"reading\", \"readings\"] }",
    ),
    (
        "attack on an unknown direction, and no flow",
        "[attack.x]\nstart = \"1 s\"\nlength = \"1 s\"\n\
         action.delay = { link = \"feeder.up\", flows = [], by = \"1 s\" }",
    ),
    (
        "attack on an unknown member",
        "[attack.x]\nstart = \"1 s\"\nlength = \"1 s\"\n\
         action.alter = { link = \"feeder.reverse[1]\" }",
    ),
    (
        "attack that delays by nothing",
        "[attack.x]\nstart = \"1 s\"\nlength = \"1 s\"\naction.delay = { link = \"feeder\" }",
    ),
    (
        "attack with an unknown checksum",
        "[attack.x]\nstart = \"1 s\"\nlength = \"1 s\"\n\
         action.alter = { link = \"feeder\", checksum = \"wrong\" }",
    ),
    (
        "flood with the name of a flow, from nowhere, without a rate",
        "[attack.reading]\nstart = \"1 s\"\nlength = \"1 s\"\n\
         action.flood = { from = \"bot\", to = \"head\", rate = \"0 bit/s\" }",
    ),
    (
        "flood of headers",
        "[attack.x]\nstart = \"1 s\"\nlength = \"1 s\"\n\
         action.flood = { from = \"meter\", to = \"head\", rate = \"1 Mbit/s\", size = \"28 B\" }",
    ),
    (
        "flood of too many datagrams",
        "[attack.x]\nstart = \"1 s\"\nlength = \"1 h\"\n\
         action.flood = { from = \"meter\", to = \"head\", rate = \"1000 Gbit/s\", \
         size = \"29 B\" }",
    ),
    (
        "flood over an unknown link",
        "[attack.x]\nstart = \"1 s\"\nlength = \"1 s\"\n\
         action.flood = { from = \"meter\", to = \"head\", rate = \"1 Mbit/s\", \
         route = [\"feder\"] }",
    ),
];
