"""The equations, token by token, in plain Python: a second derivation to hold the first one against."""

import math

ENTROPY_FLOOR = 1e-8


def list_mean(values):
    """Arithmetic mean; 0 for an empty list."""
    return math.fsum(values) / len(values) if values else 0.0


def list_deviation(values):
    """Population standard deviation; exactly 0 where only rounding tells the values apart."""
    if not values:
        return 0.0
    centre = list_mean(values)
    spread = math.sqrt(math.fsum((v - centre) ** 2 for v in values) / len(values))
    return 0.0 if spread <= 1e-12 * max(abs(v) for v in values) else spread


def standardized_value(value, centre, spread):
    """(value - centre) / spread, and 0 where there is no spread."""
    return (value - centre) / spread if spread > 0.0 else 0.0


def clipped_number(value, low, high):
    """The value held inside [low, high]."""
    return max(low, min(high, value))


def number_sign(value):
    """-1, 0 or 1."""
    return (value > 0) - (value < 0)


def sigmoid(value):
    """1 / (1 + exp(-value)) without overflow."""
    if value >= 0.0:
        return 1.0 / (1.0 + math.exp(-value))
    return math.exp(value) / (1.0 + math.exp(value))


def flat_tokens(rows):
    """All tokens of all rows in one list."""
    return [value for row in rows for value in row]


def group_row_ranges(count, group_size):
    """The row indices of each prompt."""
    return [range(start, min(start + group_size, count)) for start in range(0, count, group_size)]


def importance_ratios(logprobs, old):
    """Importance ratio rho_t = exp(log pi_t - log pi_old_t), section 0."""
    return [[math.exp(new - before) for new, before in zip(*pair)] for pair in zip(logprobs, old)]


def token_mean_loss(values, slopes):
    """Loss and gradient of minus the mean over all tokens of the objective values."""
    count = len(flat_tokens(values))
    return -math.fsum(flat_tokens(values)) / count, [[-slope / count for slope in row] for row in slopes]


def floored_entropy(entropy):
    """Entropies no smaller than the floor of section 3.1."""
    return [[max(h, ENTROPY_FLOOR) for h in row] for row in entropy]


def shaped_gtpo_rewards(correct, entropy, group_size, alpha1, alpha2):
    """Section 3.1, Eq 3 (right completions) and Eq 5 (wrong ones), before normalisation."""
    entropy = floored_entropy(entropy)
    shaped = [[0.0] * len(row) for row in entropy]
    for members in group_row_ranges(len(entropy), group_size):
        for i in members:
            for t, h in enumerate(entropy[i]):
                alive = [entropy[k][t] for k in members if correct[k] == correct[i] and len(entropy[k]) > t]
                if correct[i] == 1.0:
                    shaped[i][t] = alpha1 * correct[i] + alpha2 * h / math.fsum(alive) * len(alive)
                elif correct[i] == 0.0:
                    inverse_sum = math.fsum(1.0 / other for other in alive)
                    shaped[i][t] = -alpha1 - alpha2 * (1.0 / h) / inverse_sum * len(alive)
    return shaped


def set_normalized_rewards(correct, shaped, group_size, norm_set):
    """Section 3.1, Eq 6: each set of a group by its own mean and deviation, other set left out or zero-filled."""
    result = [[0.0] * len(row) for row in shaped]
    for members in group_row_ranges(len(shaped), group_size):
        for verdict in (1.0, 0.0):
            own = [i for i in members if correct[i] == verdict]
            other = [i for i in members if correct[i] == 1.0 - verdict]
            pool = [value for i in own for value in shaped[i]]
            if norm_set == "all":
                pool += [0.0 for i in other for _ in shaped[i]]
            centre, spread = list_mean(pool), list_deviation(pool)
            for i in own:
                result[i] = [standardized_value(value, centre, spread) for value in shaped[i]]
    return result


def expected_canonical_gtpo(correct, entropy, group_size, alpha1, alpha2, norm_set):
    """Section 3.1, Eq 3, 5 and 6: token advantages of canonical GTPO."""
    shaped = shaped_gtpo_rewards(correct, entropy, group_size, alpha1, alpha2)
    return set_normalized_rewards(correct, shaped, group_size, norm_set)


def shaped_grpo_s_rewards(correct, entropy, group_size, beta1, beta2):
    """Section 3.1, GRPO-S rewards before normalisation: GTPO's shaping on one mean entropy per completion."""
    averages = [list_mean(row) for row in floored_entropy(entropy)]
    shaped = [0.0] * len(averages)
    for members in group_row_ranges(len(averages), group_size):
        right = [averages[i] for i in members if correct[i] == 1.0]
        wrong = [1.0 / averages[i] for i in members if correct[i] == 0.0]
        for i in members:
            if correct[i] == 1.0:
                shaped[i] = beta1 * correct[i] + beta2 * averages[i] / math.fsum(right) * len(right)
            elif correct[i] == 0.0:
                shaped[i] = -beta1 - beta2 * (1.0 / averages[i]) / math.fsum(wrong) * len(wrong)
    return shaped


def expected_grpo_s(correct, entropy, group_size, beta1, beta2, norm_set):
    """Section 3.1, GRPO-S: one normalised advantage per completion."""
    shaped = shaped_grpo_s_rewards(correct, entropy, group_size, beta1, beta2)
    return flat_tokens(set_normalized_rewards(correct, [[value] for value in shaped], group_size, norm_set))


def expected_entropy_advantage(advantages, entropy, alpha, kappa):
    """Section 3.6: A' = A + min(alpha H, |A| / kappa)."""
    return [[a + min(alpha * h, abs(a) / kappa) for a, h in zip(*pair)] for pair in zip(advantages, entropy)]


def expected_rsi(logprobs, entropy, eps):
    """Section 3.11: RSI_t = -log pi(o_t) / (H_t + eps)."""
    return [[-logprob / (h + eps) for logprob, h in zip(*pair)] for pair in zip(logprobs, entropy)]


def expected_zero_variance_shaping(advantages, entropy, correct, group_size, alpha):
    """Section 3.12 row 3, RL-ZVP: alpha H_t where all are right, -alpha (max_j H_j - H_t) where all are wrong."""
    result = [list(row) for row in advantages]
    for members in group_row_ranges(len(entropy), group_size):
        all_right = all(correct[i] == 1.0 for i in members)
        all_wrong = all(correct[i] == 0.0 for i in members)
        for i in members:
            if all_right:
                result[i] = [alpha * h for h in entropy[i]]
            elif all_wrong:
                result[i] = [-alpha * (max(entropy[i]) - h) for h in entropy[i]]
    return result


def expected_stare_weights(signal, advantages, share, up, down):
    """Section 3.12 row 1, STARE: a weight for the top share of the signal on either side of A = 0."""
    weights = [[1.0] * len(row) for row in signal]
    for side, weight in ((1, up), (-1, down)):
        places = [(i, t) for i, row in enumerate(advantages) for t, a in enumerate(row) if number_sign(a) == side]
        places.sort(key=lambda place: -signal[place[0]][place[1]])
        for i, t in places[: max(1, math.floor(share * len(places)))]:
            weights[i][t] = weight
    return weights


def expected_optimal_baseline(rewards, logprobs, sum_pi_squared, group_size):
    """Section 2.11, OTB: r_i - B_t with B_t = sum r_i W_it / sum W_it, W_t = sum_{j<=t} (1 - 2 pi_j + sum_v pi^2)."""
    energy = []
    for row, squares in zip(logprobs, sum_pi_squared):
        total, sums = 0.0, []
        for logprob, square in zip(row, squares):
            total += 1.0 - 2.0 * math.exp(logprob) + square
            sums.append(total)
        energy.append(sums)
    result = [[0.0] * len(row) for row in logprobs]
    for members in group_row_ranges(len(logprobs), group_size):
        for t in range(max(len(logprobs[i]) for i in members)):
            alive = [i for i in members if len(logprobs[i]) > t]
            total = math.fsum(energy[i][t] for i in alive)
            if total == 0.0:
                baseline = list_mean([rewards[i] for i in alive])
            else:
                baseline = math.fsum(rewards[i] * energy[i][t] for i in alive) / total
            for i in alive:
                result[i][t] = rewards[i] - baseline
    return result


def expected_generalized_advantages(rewards, values, lam):
    """Mean of the values that follow, with weights (1 - lam) lam^k and the rest on the reward, less the value."""
    result = []
    for reward, row in zip(rewards, values):
        advantages = []
        for t, value in enumerate(row):
            later = row[t + 1 :]
            mean = math.fsum((1 - lam) * lam**k * following for k, following in enumerate(later))
            advantages.append(mean + lam ** len(later) * reward - value)
        result.append(advantages)
    return result


def expected_prefix_statistics(surprisals, weights):
    """Weighted sum of last, summed and largest surprisal, surprises above a nat and fiftieths of the length."""
    result = []
    for row in surprisals:
        sums = []
        for t in range(len(row)):
            before = row[:t]
            last, largest = (before[-1], max(before)) if before else (0.0, 0.0)
            numbers = [last, math.fsum(before), largest, sum(each > 1 for each in before), t / 50]
            sums.append(math.fsum(weight * number for weight, number in zip(weights, numbers)))
        result.append(sums)
    return result


def expected_soft_overlong(lengths, max_tokens, cache):
    """Section 2.5, DAPO's soft overlong penalty of each completion."""
    penalties = []
    for length in lengths:
        if length <= max_tokens - cache:
            penalties.append(0.0)
        elif length <= max_tokens:
            penalties.append((max_tokens - cache - length) / cache)
        else:
            penalties.append(-1.0)
    return penalties


def group_entropy_scores(entropy, group_size):
    """z = (H - mu_H) / sigma_H over all tokens of the group, used by Eq 6 of section 3.5 and Eq 8 of 3.8."""
    scores = []
    for members in group_row_ranges(len(entropy), group_size):
        pool = [h for i in members for h in entropy[i]]
        centre, spread = list_mean(pool), list_deviation(pool)
        scores += [[standardized_value(h, centre, spread) for h in entropy[i]] for i in members]
    return scores


def expected_eapo(advantages, entropy, group_size, alpha, phi):
    """Section 3.5, Eq 6 and 7: A + alpha sign(A) clip(z, -|A|/phi, |A|/phi)."""
    result = []
    for row, scores in zip(advantages, group_entropy_scores(entropy, group_size)):
        result.append(
            [a + alpha * number_sign(a) * clipped_number(z, -abs(a) / phi, abs(a) / phi) for a, z in zip(row, scores)]
        )
    return result


def expected_process_signal(old_logprobs, ref_logprobs, beta):
    """Section 3.8, Eq 7: s_t = beta (log pi - log pi_ref)."""
    return [[beta * (old - ref) for old, ref in zip(*pair)] for pair in zip(old_logprobs, ref_logprobs)]


def expected_position_progress(lengths):
    """Section 3.8: u_t = t / T, t counted from 1."""
    return [[t / length for t in range(1, length + 1)] for length in lengths]


def expected_entropy_progress(entropy):
    """Section 3.9: u_t = sum_{j<=t} H_j / sum_j H_j, or t / T where the sum is 0."""
    result = []
    for row in entropy:
        total = math.fsum(row)
        if total == 0.0:
            result += expected_position_progress([len(row)])
        else:
            result.append([math.fsum(row[:t]) / total for t in range(1, len(row) + 1)])
    return result


def expected_bucket_normalization(process, progress, group_size, buckets):
    """Section 3.9: s standardised over (group, bucket), the bucket being clip(ceil(K u), 1, K)."""
    result = [[0.0] * len(row) for row in process]
    for members in group_row_ranges(len(process), group_size):
        pools = {}
        for i in members:
            for t, u in enumerate(progress[i]):
                pools.setdefault(clipped_number(math.ceil(buckets * u - 1e-6), 1, buckets), []).append((i, t))
        for places in pools.values():
            values = [process[i][t] for i, t in places]
            centre, spread = list_mean(values), list_deviation(values)
            for i, t in places:
                result[i][t] = standardized_value(process[i][t], centre, spread)
    return result


def expected_entropy_gate(entropy, group_size, gamma):
    """Section 3.8, Eq 8 with delta = 0: W = sigmoid(gamma z), 1/2 where the group has no deviation."""
    return [[sigmoid(gamma * z) for z in row] for row in group_entropy_scores(entropy, group_size)]


def clipped_token_value(ratio, advantage, low, high, dual):
    """One token of min(rho A, clip(rho) A), at least dual A where A < 0, and its slope in log pi."""
    value, slope = ratio * advantage, ratio * advantage
    bounded = clipped_number(ratio, 1.0 - low, 1.0 + high) * advantage
    if bounded < value:
        value, slope = bounded, 0.0
    if advantage < 0.0 and dual * advantage > value:
        value, slope = dual * advantage, 0.0
    return value, slope


def expected_clipped_loss(logprobs, old, advantages, low, high, dual):
    """Section 2.1 and 2.5: clipped surrogate with the dual clip, token mean."""
    values, slopes = [], []
    for row, signals in zip(importance_ratios(logprobs, old), advantages):
        pairs = [clipped_token_value(ratio, a, low, high, dual) for ratio, a in zip(row, signals)]
        values.append([value for value, _ in pairs])
        slopes.append([slope for _, slope in pairs])
    return token_mean_loss(values, slopes)


def expected_cispo_loss(logprobs, old, advantages, cap):
    """Section 2.8: sg[min(rho, cap)] A log pi, token mean."""
    slopes = []
    for row, signals in zip(importance_ratios(logprobs, old), advantages):
        slopes.append([min(ratio, cap) * a for ratio, a in zip(row, signals)])
    values = [[slope * logprob for slope, logprob in zip(*pair)] for pair in zip(slopes, logprobs)]
    return token_mean_loss(values, slopes)


def sequence_ratios(logprobs, old):
    """Section 2.7: s_i = exp(mean over tokens of log rho), repeated on every token of the completion."""
    result = []
    for row, before in zip(logprobs, old):
        result.append([math.exp(list_mean([new - past for new, past in zip(row, before)]))] * len(row))
    return result


def expected_gspo_loss(logprobs, old, advantages, low, high):
    """Section 2.7, GSPO-token: value s_i, slope s_i per token; mean over rows of the mean over tokens."""
    count = sum(1 for row in logprobs if row)
    loss, gradient = 0.0, []
    for row, signals in zip(sequence_ratios(logprobs, old), advantages):
        pairs = [clipped_token_value(ratio, a, low, high, math.inf) for ratio, a in zip(row, signals)]
        loss -= list_mean([value for value, _ in pairs]) / count
        gradient.append([-slope / (len(row) * count) for _, slope in pairs])
    return loss, gradient


def k3_divergence(difference):
    """Section 2.1: k3(d) = exp(d) - d - 1."""
    return math.exp(difference) - difference - 1.0


def expected_tepo_loss(logprobs, old, advantages, low, high, beta, entropy, old_entropy):
    """Section 3.10: clipped s_i A minus beta k3(old - new) where A > 0 and the entropy falls, token mean."""
    values = [[0.0] * len(row) for row in logprobs]
    slopes = [[0.0] * len(row) for row in logprobs]
    for i, row in enumerate(sequence_ratios(logprobs, old)):
        for t, ratio in enumerate(row):
            a = advantages[i][t]
            values[i][t], slopes[i][t] = clipped_token_value(ratio, a, low, high, math.inf)
            if a > 0.0 and entropy[i][t] - old_entropy[i][t] < 0.0:
                difference = old[i][t] - logprobs[i][t]
                values[i][t] -= beta * k3_divergence(difference)
                slopes[i][t] -= beta * (1.0 - math.exp(difference))
    return token_mean_loss(values, slopes)


def token_covariances(logprobs, advantages):
    """Section 3.7: cov_t = (A_t - mean A)(log pi_t - mean log pi), means over all tokens."""
    mean_advantage, mean_logprob = list_mean(flat_tokens(advantages)), list_mean(flat_tokens(logprobs))
    result = []
    for row, signals in zip(logprobs, advantages):
        result.append([(a - mean_advantage) * (logprob - mean_logprob) for logprob, a in zip(row, signals)])
    return result


def expected_kl_cov_loss(logprobs, old, advantages, beta, share):
    """Section 3.7, KL-Cov: rho A, less beta |log rho| on the tokens of largest covariance, token mean."""
    values = [[ratio * a for ratio, a in zip(*pair)] for pair in zip(importance_ratios(logprobs, old), advantages)]
    slopes = [list(row) for row in values]
    cov = token_covariances(logprobs, advantages)
    places = [(i, t) for i, row in enumerate(cov) for t in range(len(row))]
    places.sort(key=lambda place: -cov[place[0]][place[1]])
    for i, t in places[: max(1, math.floor(share * len(places)))]:
        log_ratio = logprobs[i][t] - old[i][t]
        values[i][t] -= beta * abs(log_ratio)
        slopes[i][t] -= beta * number_sign(log_ratio)
    return token_mean_loss(values, slopes)


def expected_clip_cov_candidates(logprobs, advantages, window_low, window_high):
    """Section 3.7, Clip-Cov: tokens with window_low < cov < window_high."""
    return [[window_low < cov < window_high for cov in row] for row in token_covariances(logprobs, advantages)]


def expected_fipo_loss(logprobs, old, advantages, half_life, weight_low, weight_high, outlier, safe, low, high):
    """Section 3.12 row 2, FIPO: clipped surrogate of A f, f = clip(exp sum_{k>=t} gamma^(k-t) M_k dlogp_k)."""
    gamma = 2.0 ** (-1.0 / half_life)
    weighted = []
    for row, new, before, signals in zip(importance_ratios(logprobs, old), logprobs, old, advantages):
        weights = []
        for t, ratio in enumerate(row):
            future = math.fsum(gamma ** (k - t) * (new[k] - before[k]) for k in range(t, len(row)) if row[k] <= outlier)
            weight = clipped_number(math.exp(future), weight_low, weight_high)
            weights.append(min(weight, 1.0) if signals[t] < 0.0 and ratio > safe else weight)
        weighted.append([a * weight for a, weight in zip(signals, weights)])
    return expected_clipped_loss(logprobs, old, weighted, low, high, math.inf)


def expected_kl_penalty(logprobs, ref, beta):
    """Section 2.1: beta times the token mean of k3(log pi_ref - log pi)."""
    values = [[-beta * k3_divergence(far - near) for near, far in zip(*pair)] for pair in zip(logprobs, ref)]
    slopes = [[-beta * (1.0 - math.exp(far - near)) for near, far in zip(*pair)] for pair in zip(logprobs, ref)]
    return token_mean_loss(values, slopes)


def expected_quadrant_shares(advantages, entropy, group_size):
    """Section 4, quadrants: share of the |A| mass by sign of A and by H >= mean token entropy of the group."""
    mass = {"PHR": 0.0, "PLR": 0.0, "NHR": 0.0, "NLR": 0.0}
    for members in group_row_ranges(len(entropy), group_size):
        threshold = list_mean([h for i in members for h in entropy[i]])
        for i in members:
            for a, h in zip(advantages[i], entropy[i]):
                if a != 0.0:
                    mass[("P" if a > 0.0 else "N") + ("HR" if h >= threshold else "LR")] += abs(a)
    total = math.fsum(mass.values())
    return {name: value / total if total > 0.0 else 0.0 for name, value in mass.items()}


def plug_in_entropy(items):
    """Shannon entropy in nats of the empirical distribution of a list."""
    return -math.fsum(items.count(x) / len(items) * math.log(items.count(x) / len(items)) for x in set(items))


def expected_mutual_information(bins, labels):
    """Section 3.5 and 4: plug-in H(B) - H(B | L) in nats."""
    if not bins:
        return 0.0
    conditional = 0.0
    for label in set(labels):
        inside = [b for b, other in zip(bins, labels) if other == label]
        conditional += len(inside) / len(bins) * plug_in_entropy(inside)
    return plug_in_entropy(list(bins)) - conditional


def others_through(ids, i, t, members):
    """The other rows of a group that have the first t tokens of row i."""
    return [j for j in members if j != i and ids[j][:t] == ids[i][:t] and len(ids[j]) >= t]


def expected_prefix_baseline(rewards, ids, group_size, shrink):
    """r_i minus the mean reward of the others with the same prefix, shrunk to that of all others."""
    result = [[0.0] * len(row) for row in ids]
    for members in group_row_ranges(len(ids), group_size):
        for i in members:
            everybody = list_mean([rewards[j] for j in members if j != i])
            for t in range(len(ids[i])):
                near = [rewards[j] for j in others_through(ids, i, t, members)]
                total = len(near) + shrink
                baseline = (math.fsum(near) + shrink * everybody) / total if total else everybody
                result[i][t] = rewards[i] - baseline
    return result


def expected_tempo(rewards, ids, group_size):
    """[(r - mean) + V(s_t+1) - V(s_t)] / (unbiased deviation + 1e-6), V over all with the prefix, own row included."""
    result = [[0.0] * len(row) for row in ids]
    for members in group_row_ranges(len(ids), group_size):
        centre = list_mean([rewards[j] for j in members])
        spread = math.sqrt(math.fsum((rewards[j] - centre) ** 2 for j in members) / (group_size - 1))
        for i in members:
            values = []
            for t in range(len(ids[i])):
                values.append(list_mean([rewards[j] for j in (i, *others_through(ids, i, t, members))]))
            values.append(rewards[i])
            for t in range(len(ids[i])):
                result[i][t] = (rewards[i] - centre + values[t + 1] - values[t]) / (spread + 1e-6)
    return result


def expected_shared_states(advantages, ids, group_size):
    """The advantages of tokens whose prefix another row of the group has, 0 elsewhere."""
    result = [[0.0] * len(row) for row in ids]
    for members in group_row_ranges(len(ids), group_size):
        for i in members:
            for t, a in enumerate(advantages[i]):
                result[i][t] = a if others_through(ids, i, t, members) else 0.0
    return result


def has_opponent(advantages, ids, i, t, members, from_end):
    """Whether a row has the token of row i at the same place with credit of the other sign."""
    for j in members:
        at = len(ids[j]) - len(ids[i]) + t if from_end else t
        if 0 <= at < len(ids[j]) and ids[j][at] == ids[i][t] and advantages[j][at] * advantages[i][t] < 0.0:
            return True
    return False


def expected_conflict_weights(advantages, ids, group_size, positive, negative):
    """A weight for every token of the leading run of conflicts, and once more for every one of the trailing run."""
    weights = [[1.0] * len(row) for row in ids]
    for members in group_row_ranges(len(ids), group_size):
        for i in members:
            for from_end in (False, True):
                for t in reversed(range(len(ids[i]))) if from_end else range(len(ids[i])):
                    if not has_opponent(advantages, ids, i, t, members, from_end):
                        break
                    weights[i][t] *= positive if advantages[i][t] > 0.0 else negative
    return weights


def fisher_two_sided(a, b, c, d):
    """Sum of the probabilities of all 2 x 2 tables with these margins that are no likelier than this one."""

    def chance(x):
        return math.comb(a + c, x) * math.comb(b + d, a + b - x) / math.comb(a + b + c + d, a + b)

    chances = [chance(x) for x in range(max(0, a - d), min(a + b, a + c) + 1)]
    return min(1.0, math.fsum(p for p in chances if p <= chance(a) * (1.0 + 1e-7)))


def entropy_bits(counts):
    """Shannon entropy in bits of a distribution given by counts; 0 for none."""
    total = sum(counts)
    return -math.fsum(n / total * math.log2(n / total) for n in counts if n) if total else 0.0


def saturated_frequency(uses, tokens, all_tokens):
    """BM25's term frequency with k = 2 and b = 1/2, of a share of tokens."""
    share, scale = uses / tokens, 2.0 * (1.0 - 0.5 + 0.5 * tokens / (all_tokens / 2.0))
    return share * 3.0 / (share + scale)


def key_token_value(token, right, wrong, frequency):
    """What one token id is worth between right and wrong rows, each a list of ids."""
    a, b = sum(token in row for row in right), sum(token in row for row in wrong)
    c, d = len(right) - a, len(wrong) - b
    n = a + b + c + d
    p = fisher_two_sided(a, b, c, d)
    gain = entropy_bits([a + c, b + d]) - (a + b) / n * entropy_bits([a, b]) - (c + d) / n * entropy_bits([c, d])
    sizes = [sum(map(len, rows)) for rows in (right, wrong)]
    uses = [sum(row.count(token) for row in rows) for rows in (right, wrong)]
    for_right, for_wrong = (saturated_frequency(*pair, sum(sizes)) for pair in zip(uses, sizes))
    direction = math.asin(math.sqrt(a / (a + c))) - math.asin(math.sqrt(b / (b + d)))
    direction += frequency * (for_right / (for_wrong + 1e-5) - for_wrong / (for_right + 1e-5))
    strength = (0.0 if p > 1.0 - 1e-9 else math.exp(-2.0 * p)) + gain
    return 2.0 * (sigmoid(strength * direction / 2.0) - 0.5)


def expected_ktae(correct, ids, group_size, frequency):
    """The value of each token in its group; none for last tokens, for neither right nor wrong, or without both."""
    result = [[0.0] * len(row) for row in ids]
    for members in group_row_ranges(len(ids), group_size):
        right, wrong = ([ids[i] for i in members if correct[i] == side] for side in (1.0, 0.0))
        for i in members:
            if right and wrong and correct[i] in (0.0, 1.0):
                result[i][:-1] = [key_token_value(token, right, wrong, frequency) for token in ids[i][:-1]]
    return result


def expected_gram_scores(correct, ids, entropy, group_size, length):
    """(R_g / R - W_g / W) h / (h + H) of the strongest n-gram that holds a token, answers of one turn."""
    result = [[0.0] * len(row) for row in ids]
    for members in group_row_ranges(len(ids), group_size):
        sides = [[i for i in members if correct[i] == side] for side in (1.0, 0.0)]
        mean = list_mean([value for i in members if correct[i] in (0.0, 1.0) for value in entropy[i]])
        for i in sides[0] + sides[1] if all(sides) else []:
            for start in range(len(ids[i]) - length + 1):
                places = range(start, start + length)
                gram = [ids[i][t] for t in places]
                shares = [list_mean([float(contains(ids[j], gram)) for j in side]) for side in sides]
                local = list_mean([entropy[i][t] for t in places])
                score = (shares[0] - shares[1]) * local / (local + mean)
                for t in places:
                    result[i][t] = max(result[i][t], score, key=abs)
    return result


def contains(row, gram):
    """Whether a list holds another as a run."""
    return any(row[start : start + len(gram)] == gram for start in range(len(row)))


def expected_gradient_sizes(advantages, logprobs, sum_pi_squared):
    """Squared norm of A times the gradient of log pi with respect to the logits."""
    rows = zip(advantages, logprobs, sum_pi_squared)
    return [[a * a * (1.0 - 2.0 * math.exp(lp) + square) for a, lp, square in zip(*row)] for row in rows]


def expected_opo(rewards, lengths, group_size):
    """r_i minus the mean reward weighted by length."""
    result = [0.0] * len(rewards)
    for members in group_row_ranges(len(rewards), group_size):
        total = sum(lengths[j] for j in members)
        baseline = math.fsum(lengths[j] * rewards[j] for j in members) / total
        for i in members:
            result[i] = rewards[i] - baseline
    return result


def expected_probability_weights(logprobs, alpha):
    """alpha pi + 1 - alpha."""
    return [[alpha * math.exp(lp) + 1.0 - alpha for lp in row] for row in logprobs]
