//! The nearest of some names to one that is unknown: what an error offers.

/// The candidate that differs least, if it differs little (a third of the word at most). Case does not count.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let most = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&lower, &name.to_lowercase()), name))
        .filter(|(distance, name)| {
            *distance <= most || (word.len() >= 3 && name.to_lowercase().starts_with(&lower))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_name_and_a_stranger_finds_none() {
        assert_eq!(nearest("verfy", ["plan", "verify"]), Some("verify"));
        assert_eq!(nearest("EXPLORE", ["Explore", "Plan"]), Some("Explore"));
        assert_eq!(nearest("banana", ["plan", "verify"]), None);
    }
}
