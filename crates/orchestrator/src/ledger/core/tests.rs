use super::*;
use proptest::prelude::*;

fn budget(tokens: u64) -> Budget {
    Budget {
        usd: None,
        tokens: Some(tokens),
        output_tokens: None,
        wall: None,
        turns: None,
        warn: 0.8,
        reserve: 0.05,
        tokens_only: false,
    }
}

fn tokens(tokens: u64) -> Amount {
    Amount { tokens, turns: 1, ..Amount::default() }
}

const NOW: Duration = Duration::ZERO;
const CHILD: AccountIx = AccountIx(1);

/// A run, and a node below it.
fn two(run: u64, child: u64, has_finals: bool) -> Accounts {
    Accounts::new(vec![
        Account::new("budget".to_owned(), None, budget(run), has_finals),
        Account::new("node.a.budget".to_owned(), Some(AccountIx::RUN), budget(child), has_finals),
    ])
}

#[test]
fn a_child_is_refused_where_any_account_above_it_is_spent_and_the_highest_is_named() {
    let mut accounts = two(100, 50, false);
    accounts.recall(CHILD, tokens(60));
    let Verdict::Refused(held) = accounts.reserve(CHILD, tokens(1), Spender::Usual, NOW) else { panic!() };
    assert_eq!((held.account, held.spent, held.limit), (CHILD, 60, 50));
    accounts.recall(AccountIx::RUN, tokens(40));
    let Verdict::Refused(held) = accounts.reserve(CHILD, tokens(1), Spender::Usual, NOW) else { panic!() };
    assert_eq!((held.account, held.spent, held.limit), (AccountIx::RUN, 100, 100));
}

#[test]
fn a_request_waits_for_what_others_have_set_aside_and_alone_it_may_pass_the_ceiling() {
    let mut accounts = two(100, 1_000, false);
    assert_eq!(accounts.reserve(CHILD, tokens(90), Spender::Usual, NOW), Verdict::Granted);
    assert_eq!(accounts.reserve(CHILD, tokens(90), Spender::Usual, NOW), Verdict::Wait);
    accounts.settle(CHILD, tokens(90), tokens(5), NOW);
    assert_eq!(accounts.reserve(CHILD, tokens(900), Spender::Usual, NOW), Verdict::Granted);
}

#[test]
fn a_part_is_kept_for_final_nodes() {
    let mut accounts = two(1_000, 10_000, true);
    accounts.recall(CHILD, tokens(950));
    let verdict = accounts.reserve(CHILD, tokens(10), Spender::Usual, NOW);
    assert!(matches!(verdict, Verdict::Refused(Held { kept: true, spent: 950, .. })), "{verdict:?}");
    assert_eq!(accounts.reserve(CHILD, tokens(10), Spender::Final, NOW), Verdict::Granted);
}

#[test]
fn a_word_is_said_once_for_each_ceiling_and_not_again_in_a_later_take() {
    let mut accounts = two(100, 1_000, false);
    let near = accounts.settle(CHILD, Amount::default(), tokens(80), NOW);
    assert_eq!(near.iter().map(|held| held.account).collect::<Vec<_>>(), [AccountIx::RUN]);
    assert!(accounts.settle(CHILD, Amount::default(), tokens(1), NOW).is_empty());
    let mut later = two(100, 1_000, false);
    later.recall(CHILD, tokens(81));
    later.recalled();
    assert!(later.settle(CHILD, Amount::default(), tokens(1), NOW).is_empty());
}

#[test]
fn wall_counts_the_time_in_which_a_step_runs_and_no_moment_twice() {
    let second = Duration::from_secs;
    let mut run = budget(1);
    run.wall = Some(second(10));
    let mut accounts = Accounts::new(vec![Account::new("budget".to_owned(), None, run, false)]);
    accounts.recall_wall(AccountIx::RUN, second(3));
    assert_eq!(accounts.wall_left(second(100)), None, "nothing runs");
    accounts.entered(AccountIx::RUN, second(100));
    accounts.entered(AccountIx::RUN, second(101));
    assert_eq!(accounts.wall_left(second(102)), Some(second(5)));
    accounts.left(AccountIx::RUN, second(102));
    accounts.left(AccountIx::RUN, second(104));
    assert_eq!(accounts.wall(AccountIx::RUN, second(900)), second(7));
    accounts.entered(AccountIx::RUN, second(900));
    assert_eq!(accounts.reached(AccountIx::RUN, Spender::Usual, second(902)), None);
    let held = accounts.reached(AccountIx::RUN, Spender::Usual, second(903)).unwrap();
    assert_eq!((held.ceiling, held.spent), (Ceiling::Wall, 10_000));
}

#[test]
fn money_has_no_price_only_where_the_file_lets_it_pass() {
    let mut strict = budget(1);
    strict.usd = Some(1.0);
    let mut lenient = strict.clone();
    lenient.tokens_only = true;
    let accounts = Accounts::new(vec![
        Account::new("budget".to_owned(), None, strict, false),
        Account::new("node.a.budget".to_owned(), Some(AccountIx::RUN), lenient.clone(), false),
    ]);
    assert_eq!(accounts.wants_prices(CHILD), Some(AccountIx::RUN));
    let lenient = Accounts::new(vec![Account::new("budget".to_owned(), None, lenient, false)]);
    assert_eq!(lenient.wants_prices(AccountIx::RUN), None);
}

proptest! {
    /// Whatever agents do, spend passes no ceiling by more than one request, nothing is left set aside at the end, and
    /// what a later take recalls is what was spent.
    #[test]
    fn spend_passes_a_ceiling_by_one_request_at_most(
        limits in (1_u64..5_000, 1_u64..5_000),
        requests in prop::collection::vec((any::<bool>(), any::<bool>(), 1_u64..300, 0_u64..100), 1..200),
    ) {
        let mut accounts = two(limits.0, limits.1, false);
        let mut flying: Vec<(AccountIx, Amount, Amount)> = Vec::new();
        let mut settled = Vec::new();
        for (deep, ends_one, most, part) in requests {
            let from = if deep { CHILD } else { AccountIx::RUN };
            let ask = tokens(most);
            match accounts.reserve(from, ask, Spender::Usual, NOW) {
                Verdict::Granted => flying.push((from, ask, tokens(most * part / 100))),
                Verdict::Wait => prop_assert!(!flying.is_empty(), "nobody gives back"),
                Verdict::Refused(held) => prop_assert!(held.spent >= held.limit),
            }
            if ends_one && !flying.is_empty() {
                let (from, ask, used) = flying.remove(0);
                accounts.settle(from, ask, used, NOW);
                settled.push((from, used));
            }
            for (ix, limit) in [(AccountIx::RUN, limits.0), (CHILD, limits.1)] {
                prop_assert!(accounts.spent(ix).tokens < limit + 300);
            }
        }
        for (from, ask, used) in flying {
            accounts.settle(from, ask, used, NOW);
            settled.push((from, used));
        }
        for ix in [AccountIx::RUN, CHILD] {
            prop_assert!(accounts.spent(ix).tokens < [limits.0, limits.1][ix.0] + 300);
            prop_assert_eq!(accounts.accounts[ix.0].held, Amount::default());
        }
        let mut later = two(limits.0, limits.1, false);
        settled.iter().rev().for_each(|(from, used)| later.recall(*from, *used));
        prop_assert_eq!(later.spent(AccountIx::RUN), accounts.spent(AccountIx::RUN));
        prop_assert_eq!(later.spent(CHILD), accounts.spent(CHILD));
    }
}
