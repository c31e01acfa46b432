//! Links, TCP and loads as state machines without clock, entropy or IO.
