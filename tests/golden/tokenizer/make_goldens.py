"""Make the tokenizer goldens with Hugging Face's `tokenizers` (pip install tokenizers).

  make_goldens.py                writes mini-<pattern>.json (small vocabularies, one tokenizer.json
                                 each) and mini-<pattern>.tsv (their encodings)
  make_goldens.py MODEL.gguf     writes smollm2.tsv from the vocabulary of that file as well
                                 (pip install gguf)

A line of a .tsv is: hex of the text, TAB, ids with special tokens matched, TAB, ids without.
Where the two are equal the third column is "=".
"""
import os
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import trainers

HERE = os.path.dirname(os.path.abspath(__file__))
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TAIL = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
HEAD = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"


def split(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


PATTERNS = {
    "gpt2": pre_tokenizers.ByteLevel(add_prefix_space=False),
    "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                       pre_tokenizers.ByteLevel(add_prefix_space=False)]),
    "llama3": split(HEAD + r"\p{N}{1,3}|" + TAIL),
    "qwen2": split(HEAD + r"\p{N}|" + TAIL),
}

CORPUS = ["The quick brown fox jumps over the lazy dog. It's what they'd say, isn't it? ",
          "def main(argc, argv):\n    for i in range(10):\n        print(i, end=' ')\n\n",
          "In 2023, 1234567 people paid $99.95; 3.14159 is not 22/7.  \n\n\n",
          "Grüße aus München, où l'été est déjà là. Привет, мир! こんにちは世界。 你好，世界 ",
          "the there then this that with within without and hand stand understand "]


def texts():
    """Varied texts: each says one thing about the cut, the merges or the bytes."""
    t = ["", " ", "  ", "a", "a b", "a  b", "a   b", " a", "a ", "  a  ", "\n", "\n\n", " \n", "\n ",
         " \n \n  x", "a\nb", "a\r\nb\r\n", "\t\tx\ty", "a\t b", "\u00a0a\u00a0 b", "a\u3000b",
         "\u2003\u2003x", "a\u0085b \u0085 c", "a\u180eb", "\u200bzero\u200bwidth", "\ufeffbom",
         "Hello, world!", "Hello world", "It's I'm we've you'll he'd they're don't", "IT'S I'LL 'S",
         "'s's''s 's'", "don\u2019t", "'\u017f", "1", "12", "123", "1234", "12345", "a1b22c333",
         " 1 22 333", "3.14159", "1,234,567.89", "2023-12-01T03:40:02Z", "0x1F", "\u0663\u0664",
         "\u00bd\u00b2\u2167 \u2460", "1  2", "a  1", " \u0661", "$100 %50 #1", "x=1;y=2",
         "def f(x):\n    return x**2  # square\n", "for (int i = 0; i < n; ++i) { a[i] += b[i]; }",
         "if (a && b || !c) goto done;", "<html><body class=\"x\">hi</body></html>",
         "SELECT * FROM t WHERE a >= 10;", "{\"key\": [1, 2.5, null, true]}", "http://a.b/c?d=e&f=g#h",
         "user@example.com", "C:\\dir\\file.txt", "....", "...!?!...", "-----", "a---b", "==========",
         "(((())))", "!!! ???", "\u00bfQu\u00e9 tal?", "\u2014 em \u2013 en", "\u201cquoted\u201d",
         "na\u00efve caf\u00e9", "cafe\u0301", "e\u0301\u0323x", "\u1e69 s\u0323\u0307", "Stra\u00dfe",
         "\u041f\u0440\u0438\u0432\u0435\u0442", "\u039a\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1",
         "\u4f60\u597d\uff0c\u4e16\u754c\u3002", "\u3053\u3093\u306b\u3061\u306f",
         "\u30ab\u30bf\u30ab\u30ca", "\uc548\ub155\ud558\uc138\uc694", "\u1112\u1161\u11ab",
         "\u0645\u0631\u062d\u0628\u0627 \u0628\u0643", "\u05e9\u05dc\u05d5\u05dd",
         "\u0928\u092e\u0938\u094d\u0924\u0947", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
         "\U0001f600", "\U0001f600\U0001f600 \U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467",
         "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd", "\u2764\ufe0f", "a\U0001f600b 1\U0001f6001",
         "\U00020000\U0002a6d6", "\U0001d4d0\U0001d7d8", "\u0000", "a\u0000b", "\u0001\u0002\u0003",
         "\u001b[31mred\u001b[0m", "\u007f", "<|im_end|>", "<|im_start|>user\nHi<|im_end|>\n",
         "a<|im_end|>b", " <|im_end|> ", "<|im_end|><|im_end|>", "<|im_end", "<|im_end|", "|im_end|>",
         "<|im_start|><|endoftext|>", "<<|im_end|>>", "<|IM_END|>", "a <|endoftext|>", "1<|im_end|>2",
         "  <|im_start|>  x", "\n\n<|im_end|>\n\n", "x" * 300, "ab" * 200, " " * 100, " " * 33 + "x",
         "\n" * 50, "0123456789" * 10, "the" * 100, "\u00e9" * 64, "\u4e2d" * 64, "=" * 90 + "\n",
         "aaaaaaaaaaaaaaab", "Pneumonoultramicroscopicsilicovolcanoconiosis",
         "Donaudampfschifffahrtsgesellschaft", "supercalifragilisticexpialidocious",
         "antidisestablishmentarianism", "The the THE tHe", "camelCaseWord snake_case_word",
         "ALLCAPS Title lower", "a.b.c", "U.S.A.", "e.g. i.e.", "10%", "5'10\"", "rock 'n' roll",
         "\u2028line\u2029para", "x\u000bv\u000cf", "trailing  ", "trailing\n", "trailing \n ",
         "\r", "\r\r\n", " \r\n \r\n", "\n\r", "?\n\n!", "a,\nb;\r\n\r\nc", "...\n\n\n", " ,\n",
         "mixed \u4e2d\u6587 and English 123", "Tell me a joke", "Once upon a time, there was"]
    r = random.Random(7)
    pool = ["a", "B", "the", " ", "  ", "\n", "\r", "\t", "1", "23", "'s", "'", ".", ",!", "\u00e9",
            "e\u0301", "\u4e2d", "\U0001f600", "\u200d", "\u0663", "\u00a0", "\u3000", "\u0085", "_",
            "<|im_end|>", "<|im", "ing", "\u0939\u093f", "\u00b2", "\u2167", "'LL", "$", "\u017f"]
    t += ["".join(r.choice(pool) for _ in range(r.randint(3, 24))) for _ in range(120)]
    return t


def write(tok, path, nfc=False):
    kept = []
    for text in texts():
        tok.encode_special_tokens = False
        special = tok.encode(text, add_special_tokens=False).ids
        if not nfc and tok.decode(special, skip_special_tokens=False) != text:
            continue  # tokenizers leaves out bytes that the vocabulary lacks
        tok.encode_special_tokens = True
        plain = tok.encode(text, add_special_tokens=False).ids
        line = "\t".join([text.encode().hex(), " ".join(map(str, special)),
                          "=" if special == plain else " ".join(map(str, plain))])
        kept.append(line)
    with open(path, "w") as f:
        f.write("\n".join(kept) + "\n")
    print(path, len(kept), "of", len(texts()))


def mini(name, pre, nfc=False):
    tok = Tokenizer(models.BPE())
    if nfc:
        tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=700, show_progress=False, special_tokens=SPECIAL,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tok.train_from_iterator(CORPUS * 3, trainer)
    tok.add_tokens([AddedToken("ThE", special=False, normalized=False)])
    tok.save(os.path.join(HERE, f"mini-{name}.json"), pretty=False)
    write(tok, os.path.join(HERE, f"mini-{name}.tsv"), nfc)


def from_gguf(path):
    from gguf import GGUFReader
    fields = GGUFReader(path).fields

    def get(key):
        return fields["tokenizer.ggml." + key].contents()
    tokens, types = get("tokens"), get("token_type")
    merges = [tuple(m.split(" ")) for m in get("merges")]
    tok = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tok.pre_tokenizer = PATTERNS["smollm"]
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False)
                            for t, k in zip(tokens, types) if k == 3])
    write(tok, os.path.join(HERE, "smollm2.tsv"))


if __name__ == "__main__":
    for key, value in PATTERNS.items():
        mini(key, value)
    mini("qwen2-nfc", PATTERNS["qwen2"], nfc=True)
    if len(sys.argv) > 1:
        from_gguf(sys.argv[1])
