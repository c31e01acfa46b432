//! Sets of properties in one byte, to keep connections small.

use std::fmt;
use std::marker::PhantomData;

/// A property of a [`BitSet`].
pub(super) trait Property: Copy {
    /// The bit of the property: a single one, which no other property has.
    fn bit(self) -> u8;
}

/// A set of at most eight properties.
#[derive(Clone, Copy)]
pub(super) struct BitSet<P>(u8, PhantomData<P>);

impl<P> Default for BitSet<P> {
    fn default() -> Self {
        Self(0, PhantomData)
    }
}

impl<P> fmt::Debug for BitSet<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010b}", self.0)
    }
}

impl<P: Property> BitSet<P> {
    #[inline]
    pub(super) fn has(self, property: P) -> bool {
        self.0 & property.bit() != 0
    }

    /// Whether the set has one of these properties.
    #[inline]
    pub(super) fn has_any(self, [first, second]: [P; 2]) -> bool {
        self.0 & (first.bit() | second.bit()) != 0
    }

    #[inline]
    pub(super) fn set(&mut self, property: P, holds: bool) {
        self.0 = self.0 & !property.bit() | if holds { property.bit() } else { 0 };
    }

    /// Keeps a property only if it `holds`.
    pub(super) fn restrict(&mut self, property: P, holds: bool) {
        self.set(property, self.has(property) && holds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy)]
    enum Colour {
        Red = 1,
        Blue = 128,
    }

    impl Property for Colour {
        fn bit(self) -> u8 {
            self as u8
        }
    }

    #[test]
    fn each_property_is_set_by_itself() {
        let mut set = BitSet::default();
        let has = |set: BitSet<Colour>| [Colour::Red, Colour::Blue].map(|colour| set.has(colour));
        assert_eq!(has(set), [false, false]);
        set.set(Colour::Blue, true);
        assert_eq!(has(set), [false, true]);
        set.set(Colour::Red, true);
        set.set(Colour::Blue, false);
        assert_eq!(has(set), [true, false]);
        // A restriction adds nothing.
        set.restrict(Colour::Blue, true);
        assert_eq!(has(set), [true, false]);
        set.restrict(Colour::Red, false);
        assert_eq!(has(set), [false, false]);
    }

    #[test]
    fn a_set_is_a_byte() {
        assert_eq!(size_of::<BitSet<Colour>>(), 1);
    }
}
