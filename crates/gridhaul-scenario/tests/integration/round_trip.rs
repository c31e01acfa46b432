//! Whatever is written reads back equal.

use gridhaul_scenario::Scenario;
use proptest::prelude::*;

use crate::random;

proptest! {
    #[test]
    fn scenarios_read_back(scenario in random::scenario()) {
        scenario.validate().unwrap();
        let text = scenario.to_toml();
        let again = Scenario::from_toml(&text, "merged.toml").map_err(|error| {
            TestCaseError::fail(format!("{error}\n{text}"))
        })?;
        prop_assert_eq!(&again, &scenario);
        prop_assert_eq!(again.to_toml(), text);
        prop_assert_eq!(scenario.points().unwrap().len(), scenario.point_count().unwrap());
    }

    #[test]
    fn any_text_is_read_or_refused(
        text in "(?s).{0,200}",
        line in "[a-z.\\[\\]=\"{}0-9 ,\n]{0,200}",
    ) {
        for text in [text, line] {
            if let Err(error) = Scenario::from_toml(&text, "any.toml") {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
