//! Names of folders and branches. Two addresses never meet in one name.

use crate::addr::StepAddr;
use claw_kernel::digest::Digest;
use claw_kernel::ids::RunId;

/// A longer name is cut: file systems end at 255 bytes.
const LONGEST: usize = 180;
const HEAD: usize = 120;

/// The last part of folder and branch: the address with `/` as `--`, and the attempt. What git takes in no branch, and
/// what would look like another address, is marked with `%`.
pub(crate) fn name_of(owner: &StepAddr, attempt: u32) -> String {
    let text = owner.to_string();
    let mut name = String::with_capacity(text.len() + 8);
    let mut last = None;
    for sign in text.chars() {
        match sign {
            '/' => name.push_str("--"),
            '~' => name.push_str("%+"),
            '.' | '-' if last == Some(sign) => name.extend(['%', sign]),
            _ => name.push(sign),
        }
        last = Some(sign);
    }
    if name.len() > LONGEST {
        name.truncate(name.floor_char_boundary(HEAD));
        name.push_str(&format!("%={}", &Digest::of(&text).hex()[..16]));
    }
    // An item's key may end in a point.
    let mark = if name.ends_with('.') { "%" } else { "" };
    format!("{name}{mark}.{attempt}")
}

/// The branch that keeps the work.
pub(crate) fn branch_of(run: RunId, owner: &StepAddr, attempt: u32) -> String {
    format!("claw/{run}/{}", name_of(owner, attempt))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addr::{AddrPart, ItemKey};
    use std::collections::HashSet;

    fn name(addr: &str) -> String {
        name_of(&addr.parse().unwrap(), 1)
    }

    #[test]
    fn an_address_is_a_name_that_people_know_again() {
        assert_eq!(name("fix"), "fix.1");
        assert_eq!(name("fix@2/edit"), "fix@2--edit.1");
        assert_eq!(name_of(&"a=x/b".parse().unwrap(), 12), "a=x--b.12");
    }

    #[test]
    fn two_addresses_never_meet_and_git_takes_every_name() {
        let item = |raw: &str| StepAddr::item("a".parse().unwrap(), ItemKey::of(raw));
        let child = AddrPart::Node { node: "b".parse().unwrap(), item: None, iteration: None };
        let long = "x".repeat(100);
        let mut seen = HashSet::new();
        for addr in [
            item("x").below(child.clone()),
            item("x--b"),
            item("x-").below(child.clone()),
            item("x---b"),
            item(".."),
            item("a..b"),
            item("x."),
            item("x.lock"),
            item(&long),
            item(&format!("{long}~")),
            (0..8).fold(item(&long), |addr, _| addr.below(child.clone()).below(AddrPart::Child(7))),
        ] {
            let name = name_of(&addr, 1);
            assert!(!name.contains("..") && !name.contains('~') && name.len() < 250, "{name}");
            assert!(seen.insert(name), "{addr}");
        }
    }
}
