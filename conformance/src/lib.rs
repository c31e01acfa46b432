//! One body of TCP cases, run on several arms.
