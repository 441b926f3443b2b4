//! Changes inputs at random: bits, bytes, numbers, words of the corpus, pieces of other inputs, nesting, and cuts.

use crate::random::Random;

/// Largest input that is made.
const MAX_BYTES: usize = 16 << 10;
/// Words of the corpus that are kept.
const MAX_WORDS: usize = 4096;
/// Most changes of one input.
const MAX_CHANGES: usize = 6;
/// How often something is repeated at most.
const MAX_REPEATS: usize = 300;

/// Numbers at the edges of types.
const NUMBERS: [&str; 24] = [
    "0",
    "-0",
    "1",
    "-1",
    "127",
    "128",
    "255",
    "256",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e-400",
    "0.1",
];

/// Characters that readers of text trip over.
const SPECIALS: [&str; 24] = [
    "\0", "\n", "\r\n", "\t", " ", "\"", "\\", "/", "~1", "%2f", "%00", "\u{80}", "\u{7ff}", "\u{ffff}",
    "😀", "\u{feff}", "\u{202e}", "null", "true", "{}", "[]", "''", "\\u0000", "\\ud800",
];

/// Makes inputs out of those there are.
#[derive(Debug)]
pub struct Mutator {
    random: Random,
    words: Vec<Vec<u8>>,
}

impl Mutator {
    /// Learns the words of some inputs.
    pub fn new<'a>(seed: u64, inputs: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut words: Vec<_> = inputs.flat_map(words_of).map(<[u8]>::to_vec).collect();
        words.sort_unstable();
        words.dedup();
        words.truncate(MAX_WORDS);
        Self { random: Random::new(seed), words }
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound)
    }

    /// An input like one of two.
    pub fn mutate(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.random.below(MAX_CHANGES) {
            self.change(&mut bytes, other);
            bytes.truncate(MAX_BYTES);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        match self.random.below(14) {
            0 => self.flip_bit(bytes),
            1 => self.set_byte(bytes),
            2 => self.remove_piece(bytes),
            3 => self.double_piece(bytes),
            4 => self.insert_from(bytes, other),
            5 => self.splice(bytes, other),
            6 | 7 => self.insert_word(bytes),
            8 | 9 => self.replace_word(bytes),
            10 => self.replace_number(bytes),
            11 => self.insert_special(bytes),
            12 => self.nest(bytes),
            _ => bytes.truncate(self.random.below(bytes.len() + 1)),
        }
    }

    fn place(&mut self, bytes: &[u8]) -> usize {
        self.random.below(bytes.len() + 1)
    }

    /// A piece of some bytes: often short, now and then of any length.
    fn piece(&mut self, bytes: &[u8]) -> (usize, usize) {
        let begin = self.place(bytes);
        let most = bytes.len() - begin;
        let most = if self.random.below(3) == 0 { most } else { most.min(32) };
        (begin, begin + self.random.below(most + 1))
    }

    fn flip_bit(&mut self, bytes: &mut [u8]) {
        let (at, bit) = (self.random.below(bytes.len()), self.random.below(8));
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << bit;
        }
    }

    fn set_byte(&mut self, bytes: &mut [u8]) {
        let (at, value) = (self.random.below(bytes.len()), self.random.number());
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value.to_le_bytes()[0];
        }
    }

    fn remove_piece(&mut self, bytes: &mut Vec<u8>) {
        let (begin, end) = self.piece(bytes);
        bytes.drain(begin..end);
    }

    fn double_piece(&mut self, bytes: &mut Vec<u8>) {
        let (begin, end) = self.piece(bytes);
        let piece = bytes[begin..end].to_vec();
        let repeats = if self.random.below(4) == 0 { self.random.below(MAX_REPEATS) } else { 1 };
        let room = MAX_BYTES / piece.len().max(1);
        insert(bytes, end, &piece.repeat(repeats.min(room)));
    }

    fn insert_from(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let (begin, end) = self.piece(other);
        let at = self.place(bytes);
        insert(bytes, at, &other[begin..end]);
    }

    fn splice(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let (at, from) = (self.place(bytes), self.place(other));
        bytes.truncate(at);
        bytes.extend_from_slice(&other[from..]);
    }

    fn insert_word(&mut self, bytes: &mut Vec<u8>) {
        let at = self.place(bytes);
        if let Some(word) = self.random.pick(&self.words) {
            insert(bytes, at, word);
        }
    }

    fn replace_word(&mut self, bytes: &mut Vec<u8>) {
        let Some((begin, end)) = self.any_run(bytes, u8::is_ascii_alphanumeric) else { return };
        if let Some(word) = self.random.pick(&self.words) {
            bytes.splice(begin..end, word.iter().copied());
        }
    }

    fn replace_number(&mut self, bytes: &mut Vec<u8>) {
        let found = self.any_run(bytes, u8::is_ascii_digit);
        let Some(number) = self.random.pick(&NUMBERS) else { return };
        if let Some((begin, end)) = found {
            bytes.splice(begin..end, number.bytes());
            return;
        }
        // What is not text has numbers of a fixed width.
        let at = self.place(bytes);
        let width = 1 << self.random.below(4);
        let fill = [0, 0xff, 0x7f, 0x80][self.random.below(4)];
        bytes.iter_mut().skip(at).take(width).for_each(|byte| *byte = fill);
    }

    fn insert_special(&mut self, bytes: &mut Vec<u8>) {
        let at = self.place(bytes);
        if let Some(special) = self.random.pick(&SPECIALS) {
            insert(bytes, at, special.as_bytes());
        }
    }

    /// Puts brackets around a piece, many times.
    fn nest(&mut self, bytes: &mut Vec<u8>) {
        let pairs: [(&[u8], &[u8]); 6] =
            [(b"[", b"]"), (b"{\"a\":", b"}"), (b"(", b")"), (b"!", b""), (b"- ", b""), (b"{a: ", b"}")];
        let (begin, end) = self.piece(bytes);
        let depth = 1 + self.random.below(MAX_REPEATS);
        let Some((open, close)) = self.random.pick(&pairs) else { return };
        insert(bytes, end, &close.repeat(depth));
        insert(bytes, begin, &open.repeat(depth));
    }

    /// A place where bytes of a sort begin, near a random one, and where they end.
    fn any_run(&mut self, bytes: &[u8], is: fn(&u8) -> bool) -> Option<(usize, usize)> {
        let from = self.random.below(bytes.len());
        let begin = from + bytes.get(from..)?.iter().position(is)?;
        let end =
            bytes[begin..].iter().position(|byte| !is(byte)).map_or(bytes.len(), |length| begin + length);
        Some((begin, end))
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    bytes.splice(at..at, piece.iter().copied());
}

/// Runs of letters, digits and a few signs, and lines.
fn words_of(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.$/".contains(byte);
    let runs = input.split(move |byte| !is_word(byte));
    let lines = input.split(|byte| *byte == b'\n').filter(|line| line.len() < 120);
    runs.chain(lines).filter(|word| !word.is_empty() && word.len() < 200)
}
