from rlcredit.campaign.slots import shared_out


def test_every_run_has_its_own_gpu_and_its_share_of_the_cores():
    slots = shared_out(["2", "3"], slots=None, threads=None, available=16)
    assert slots == [
        {"OMP_NUM_THREADS": "8", "CUDA_VISIBLE_DEVICES": "2"},
        {"OMP_NUM_THREADS": "8", "CUDA_VISIBLE_DEVICES": "3"},
    ]


def test_without_gpus_there_is_a_run_for_every_core():
    assert shared_out([], slots=None, threads=None, available=3) == 3 * [{"OMP_NUM_THREADS": "1"}]
    assert shared_out([], slots=2, threads=None, available=8) == 2 * [{"OMP_NUM_THREADS": "4"}]
