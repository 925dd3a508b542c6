from rlcredit.campaign.slots import make_slot_environments


def test_every_run_has_its_own_gpu_and_its_share_of_the_cores():
    slots = make_slot_environments(["2", "3"], slots=None, threads=None, available=16)
    assert slots == [
        {"OMP_NUM_THREADS": "8", "CUDA_VISIBLE_DEVICES": "2"},
        {"OMP_NUM_THREADS": "8", "CUDA_VISIBLE_DEVICES": "3"},
    ]


def test_without_gpus_there_is_a_run_for_every_core():
    assert make_slot_environments([], slots=None, threads=None, available=3) == 3 * [{"OMP_NUM_THREADS": "1"}]
    assert make_slot_environments([], slots=2, threads=None, available=8) == 2 * [{"OMP_NUM_THREADS": "4"}]
