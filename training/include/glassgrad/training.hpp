#pragma once
// All of training/.

#include <glassgrad/layers.hpp>
#include <glassgrad/training/average.hpp>
#include <glassgrad/training/bpe_tokenizer.hpp>
#include <glassgrad/training/checkpoint.hpp>
#include <glassgrad/training/clip.hpp>
#include <glassgrad/training/corpus.hpp>
#include <glassgrad/training/dataset.hpp>
#include <glassgrad/training/gradient_tree.hpp>
#include <glassgrad/training/health.hpp>
#include <glassgrad/training/loss_curve.hpp>
#include <glassgrad/training/metrics.hpp>
#include <glassgrad/training/optimizers.hpp>
#include <glassgrad/training/progress.hpp>
#include <glassgrad/training/report.hpp>
#include <glassgrad/training/run_folder.hpp>
#include <glassgrad/training/run_lock.hpp>
#include <glassgrad/training/schedule.hpp>
#include <glassgrad/training/stop_signals.hpp>
#include <glassgrad/training/stopping.hpp>
#include <glassgrad/training/tasks.hpp>
#include <glassgrad/training/tensorboard.hpp>
#include <glassgrad/training/text_model.hpp>
#include <glassgrad/training/tokenizer.hpp>
#include <glassgrad/training/trainer.hpp>
