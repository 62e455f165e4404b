"""Weighs words: how much each speaks for training against running a model, for a guide to such errors against a report
of one, and for a text that only speaks of them against one that meets one, by the texts of wild.txt. Writes the table of
sim/hlo/evidence.c: python3 tests/golden/logs/weigh.py

Logistic regression with a price on each word (L1), then once more on the stems and the words that are left, almost free (L2). Reads
words as sim/hlo/evidence.c does: runs of letters in lower case, the parts of CamelCase, pairs of neighbours in a line,
two characters of Chinese, Japanese and Korean, and stems ("infer*"). Without arguments of wild.txt; other files in its
form can be named. Of what was written last, 79 of 511 words are taken out again: without them every answer stays."""
import math
import re
import sys

TRAINING = {'smaller_batch', 'remat', 'loss_chunks', 'shard_state', 'offload_optimizer', 'smaller_moments',
            'sharded_checkpoint'}
RUNNING = {'fewer_requests', 'fewer_bits', 'shard_weights', 'server_share', 'kv_budget'}
OF_SIZE = {'unknown', 'size', 'single_giant', 'state', 'fragmentation'}
STEMS = '''alphafold animat basecall benchmark chat checkpoint colabfold comfy deepseek detect dreambooth embed epoch
evaluat evict exllam falcon finetun gradient infer inferenc inpaint invoke kubelet learn llama mistral
mixtral ollama optimiz predict pretrain protein qlora qwen reconstruct render rerank resnet restor retrain sampl
segment serv starcoder swap synthes tokeniz train trainer transcri transduc upscal vicuna voxel whisper wizard
worker'''.split()
TONGUES = {'\u8bad\u7ec3': 'train*', '\u5fae\u8c03': 'finetun*', '\u5b66\u7fd2': 'train*', '\u63a8\u7406': 'infer*',
           '\u63a8\u8ad6': 'infer*', '\u90e8\u7f72': 'serv*'}  # what two characters mean; as in evidence.c
NAMED = set('generate generating generation'.split())  # weighed in any case, as stems are
PLAIN = set('''generated about after all also and any are because been but can could did does for from had has have how into its just more
not now only other out please same should since some than that the their them then there they this was were what when which while will
with would you your'''.split())
REFUSED = set('''alloc allocat* allocate allocated allocation allocator already bytes capacity cuda device error exception
exhausted failed free gib gpu hip kib memory memoryerror mib oom out outofmemoryerror reserved resource resourceexhaustederror runtime
request runtimeerror total torch traceback tried trying'''.split())  # they tell of the refusal, nothing of the program
LETTERS = 24  # of a word that count
SHORTEST = 3
LEAST = 4     # texts with a word that is weighed
PRICE = 0.7   # of a word
DEAR = 8.0    # ... that tells a mention from a report: a hundred words part unread texts as well as thousands
EVEN = 0.4    # taken off the bias: there are more texts of training here than elsewhere

SELF = re.compile(r"(?<![A-Za-z])(I [a-z]|I'm |I've|i am |i try|i use|i hav|[Mm]y )")
PRINTED = re.compile(r'^\S*(Error|EXHAUSTED|bad_alloc)\S*:|[0-9]:[0-9]{2}:[0-9]{2}', re.M)
PAGE = re.compile('[^#/]*[.][^#/]*/[^#]*$')  # where guides stand: no thread, no repository

WORD = re.compile('[A-Za-z]+|[\u3000-\ud7ff]+')
PART = re.compile('[A-Z]+(?![a-z])|[A-Z]?[a-z]+')


def is_telling(word):
    return len(word) >= SHORTEST and word not in PLAIN


def is_any(word):
    return len(word) > 1


def words_of(text, is_telling=is_telling):
    found = set()
    for line in text.split('\n'):
        before = None
        for run in WORD.findall(line):
            if run[0] >= '\x80':
                pairs = {run[i:i + 2] for i in range(len(run) - 1)}
                found |= pairs | {TONGUES[pair] for pair in pairs if pair in TONGUES}
                before = None
                continue
            whole = run.lower()[:LETTERS]
            for word in {whole} | {part.lower()[:LETTERS] for part in PART.findall(run)}:
                if is_telling(word):
                    found.add(word)
                    found.update(stem + '*' for stem in STEMS if word.startswith(stem))
            if before and is_telling(before) and is_telling(whole):
                found.add(before + ' ' + whole)
            before = whole
    return found


def read(path):
    """Rows: where it stood, wanted and available bytes, cause, advice (what the thread ended with, behind a bar, else what is
    said), text."""
    rows = []
    for line in open(path, encoding='utf8', errors='replace'):
        if not line.startswith('@ '):
            rows[-1][5].append(line)
            continue
        row, _, other = line[2:].strip().partition(' | ')
        said, other = row.split(), other.split()
        said[5 - len(other):] = other if len(other) in (2, 4) else said[5 - len(other):]
        rows.append((*said, []))
    return [(*said, ''.join(text)) for *said, text in rows]


def train(rows, names, price, ridge, rounds):
    """Newton's step for one word after the other. Rows: (words, +1 or -1). Returns bias and weights."""
    index = {word: i for i, word in enumerate(names)}
    of_word = [[] for _ in names]
    for row, (words, _) in enumerate(rows):
        for word in words:
            if word in index:
                of_word[index[word]].append(row)
    signs = [sign for _, sign in rows]
    margins, weights, bias = [0.0] * len(rows), [0.0] * len(names), 0.0

    def step(members, weight, price, ridge):
        slope, bend = ridge * weight, ridge + 1e-6
        for row in members:
            wrong = 1 / (1 + math.exp(min(signs[row] * margins[row], 500)))
            slope -= signs[row] * wrong
            bend += wrong * (1 - wrong)
        aim = bend * weight - slope
        aim = (aim - price if aim > price else aim + price if aim < -price else 0.0) / bend
        move = max(-1.0, min(1.0, aim - weight))
        for row in members:
            margins[row] += move
        return weight + move

    active = range(len(names))
    for turn in range(rounds):
        bias = step(range(len(rows)), bias, 0.0, 0.0)
        for i in active:
            if weights[i] or of_word[i]:
                weights[i] = step(of_word[i], weights[i], price, ridge)
        active = range(len(names)) if turn % 8 == 7 else [i for i in range(len(names)) if weights[i]]
    return bias, weights


def weigh(rows, price, stems):
    """The bias, and a weight for each word that counts."""
    count = {}
    for words, _ in rows:
        for word in words:
            count[word] = count.get(word, 0) + 1
    names = sorted(word for word, n in count.items() if n >= LEAST)
    _, weights = train(rows, names, price, 0.0, 64)
    names = [word for word, w in zip(names, weights) if abs(w) > 0.02 or (stems and (word[-1] == '*' or word in NAMED))]
    bias, weights = train(rows, names, 0.0, 0.5, 32)
    return bias, dict(zip(names, weights))


def is_report(text):
    """What no guide has: somebody who tells of himself, a printed line."""
    return SELF.search(text) or PRINTED.search(text)


def rows_of(texts):
    trains, guides, mentions = [], [], []
    for place, wanted, there, cause, knob, text in texts:
        if cause in OF_SIZE and knob in TRAINING | RUNNING:
            words = {word for word in words_of(text) if REFUSED.isdisjoint(word.split())}
            trains.append((words, 1 if knob in TRAINING else -1))
        guide = cause == 'nothing' and PAGE.match(place)
        if guide or (cause != 'nothing' and wanted == there == '-' and not is_report(text)):
            guides.append((words_of(text, is_any), 1 if guide else -1))
        if wanted == there == '-':
            mentions.append((words_of(text, is_any), 1 if cause == 'nothing' or cause[-1] == '?' else -1))
    return trains, guides, mentions


def main():
    texts = [t for path in sys.argv[1:] or ['tests/golden/logs/wild.txt'] for t in read(path)]
    trains, guides, mentions = rows_of(texts)
    learnt = weigh(trains, PRICE, True), weigh(guides, PRICE, False), weigh(mentions, DEAR, False)
    biases, weights = [bias for bias, _ in learnt], [weights for _, weights in learnt]
    biases[0] -= EVEN
    print('/* What words weigh, by %d texts whose end is known: written by tests/golden/logs/weigh.py. */' % len(texts))
    print('#include "sim/hlo/evidence.h"\n')
    print('const struct hb_evidence_word hb_evidence_bias = {"", %d, %d, %d};' % tuple(round(100 * bias) for bias in biases))
    print('const struct hb_evidence_word hb_evidence_words[] = {')
    for word in sorted(set().union(*weights)):
        told = ''.join(c if c < '\x80' else '\\u%04x' % ord(c) for c in word)
        row = [round(100 * of.get(word, 0)) for of in weights]
        if any(row):
            print('    {"%s", %d, %d, %d},' % (told, *row))
    print('};\nconst size_t hb_evidence_word_count = sizeof hb_evidence_words / sizeof *hb_evidence_words;')


if __name__ == '__main__':
    main()
