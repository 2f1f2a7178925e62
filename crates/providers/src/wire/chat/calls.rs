//! Tells parallel calls of the chat wire apart, whatever a server does with indexes and ids.
//!
//! Owns the guess which call a piece belongs to. Pure.

/// One piece of a `tool_calls` array.
#[derive(Clone, Copy, Debug, Default)]
pub struct Piece<'a> {
    /// The server's index; may be missing, repeated or skip.
    pub index: Option<i64>,
    /// The call's id; empty where missing.
    pub id: &'a str,
    /// The tool's name; empty where missing.
    pub name: &'a str,
    /// A piece of the arguments.
    pub arguments: &'a str,
}

/// Where a piece belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It opens the next call.
    New(usize),
    /// It goes on with this call.
    Of(usize),
    /// It goes on with this call and brings its id or name, which had been missing.
    Names(usize),
}

#[derive(Debug)]
struct Call {
    index: Option<i64>,
    id: String,
    name: String,
    input: Depth,
}

/// The calls of one message, in order of appearance.
#[derive(Debug, Default)]
pub struct Calls(Vec<Call>);

impl Calls {
    /// Whether there was any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Id and name of a call.
    pub fn name_of(&self, at: usize) -> Option<(&str, &str)> {
        self.0.get(at).map(|call| (call.id.as_str(), call.name.as_str()))
    }

    /// Finds the call of a piece and takes the piece into account.
    pub fn place(&mut self, piece: &Piece<'_>) -> Place {
        let place = match self.known(piece) {
            Some(at) => {
                let call = &mut self.0[at];
                let is_news = (call.id.is_empty() && !piece.id.is_empty())
                    || (call.name.is_empty() && !piece.name.is_empty());
                if is_news {
                    fill(&mut call.id, piece.id);
                    fill(&mut call.name, piece.name);
                    Place::Names(at)
                } else {
                    Place::Of(at)
                }
            }
            None => {
                self.0.push(Call {
                    index: piece.index,
                    id: piece.id.to_owned(),
                    name: piece.name.to_owned(),
                    input: Depth::default(),
                });
                Place::New(self.0.len() - 1)
            }
        };
        let (Place::New(at) | Place::Of(at) | Place::Names(at)) = place;
        self.0[at].input.take(piece.arguments);
        place
    }

    fn known(&self, piece: &Piece<'_>) -> Option<usize> {
        let newest = |matches: &dyn Fn(&Call) -> bool| self.0.iter().rposition(matches);
        let at = match (piece.index, piece.id) {
            // Neither: a name opens a call, a bare piece goes on with the newest.
            (None, "") if piece.name.is_empty() => return self.0.len().checked_sub(1),
            (None, "") => return None,
            (None, id) => newest(&|call| call.id == id)?,
            (Some(index), "") => newest(&|call| call.index == Some(index))?,
            (Some(index), id) => newest(&|call| call.index == Some(index)).filter(|at| {
                let known = &self.0[*at];
                known.id.is_empty() || known.id == id
            })?,
        };
        // Whoever names a call again after its input was whole means another one.
        let names_again = !piece.id.is_empty() || !piece.name.is_empty();
        let is_another = names_again && self.0[at].input.is_whole() && !piece.arguments.trim().is_empty();
        (!is_another).then_some(at)
    }
}

fn fill(field: &mut String, value: &str) {
    if field.is_empty() {
        field.push_str(value);
    }
}

/// Follows the brackets of a JSON text that comes in pieces.
#[derive(Debug, Default)]
struct Depth {
    open: u32,
    in_string: bool,
    escaped: bool,
    closed: bool,
}

impl Depth {
    fn take(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.open += 1,
                b'}' | b']' => {
                    self.open = self.open.saturating_sub(1);
                    self.closed |= self.open == 0;
                }
                _ => {}
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.closed && self.open == 0 && !self.in_string
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece<'a>(index: Option<i64>, id: &'a str, name: &'a str, arguments: &'a str) -> Piece<'a> {
        Piece { index, id, name, arguments }
    }

    fn places(pieces: &[Piece<'_>]) -> Vec<Place> {
        let mut calls = Calls::default();
        pieces.iter().map(|p| calls.place(p)).collect()
    }

    #[test]
    fn two_calls_at_index_zero_are_told_apart_by_id() {
        let seen = places(&[piece(Some(0), "a", "r", "{}"), piece(Some(0), "b", "r", "{}")]);
        assert_eq!(seen, [Place::New(0), Place::New(1)]);
    }

    #[test]
    fn two_calls_at_one_index_with_one_id_are_told_apart_by_whole_inputs() {
        let seen = places(&[piece(Some(0), "a", "r", "{\"x\":\"}\"}"), piece(Some(0), "a", "r", "{}")]);
        assert_eq!(seen, [Place::New(0), Place::New(1)]);
    }

    #[test]
    fn an_id_and_name_that_come_with_every_piece_stay_one_call() {
        let seen = places(&[
            piece(Some(0), "a", "r", "{\"x\":"),
            piece(Some(0), "a", "r", "\"{}\""),
            piece(Some(0), "a", "r", "}"),
            piece(Some(0), "a", "r", ""),
        ]);
        assert_eq!(seen, [Place::New(0), Place::Of(0), Place::Of(0), Place::Of(0)]);
    }

    #[test]
    fn without_indexes_the_newest_call_goes_on() {
        let seen = places(&[
            piece(None, "a", "r", "{"),
            piece(None, "", "", "}"),
            piece(None, "b", "r", "{"),
            piece(None, "", "", "}"),
        ]);
        assert_eq!(seen, [Place::New(0), Place::Of(0), Place::New(1), Place::Of(1)]);
    }

    #[test]
    fn indexes_may_interleave_start_anywhere_and_skip() {
        let seen = places(&[
            piece(Some(1), "a", "r", ""),
            piece(Some(7), "b", "r", ""),
            piece(Some(7), "", "", "{}"),
            piece(Some(1), "", "", "{}"),
        ]);
        assert_eq!(seen, [Place::New(0), Place::New(1), Place::Of(1), Place::Of(0)]);
    }

    #[test]
    fn a_name_that_comes_late_is_said() {
        let seen = places(&[piece(Some(0), "a", "", ""), piece(Some(0), "", "r", "{}")]);
        assert_eq!(seen, [Place::New(0), Place::Names(0)]);
    }

    #[test]
    fn one_id_at_two_indexes_is_two_calls() {
        let seen = places(&[piece(Some(0), "call_0", "b", "{}"), piece(Some(1), "call_0", "b", "{}")]);
        assert_eq!(seen, [Place::New(0), Place::New(1)]);
    }
}
